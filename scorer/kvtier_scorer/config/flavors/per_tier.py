"""A prefix scorer a tier, each with an index of its own: what most pickers take."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kvtier_scorer.config.flavors.document import PREFIX, Plugin, load_plugins, render
from kvtier_scorer.config.flavors.tiers import PrefixTier, entries_of, prefix_tiers, unknown_gpu
from kvtier_scorer.config.model import PickerConfig, PickerInput


def per_tier_config(
    given: PickerInput,
    version: str,
    api_version: str,
    parameters: Callable[[PrefixTier], Mapping[str, Any]],
    sections: Mapping[str, Any] = MappingProxyType({}),
) -> PickerConfig:
    """The configuration, in entries of the engine's own blocks.

    Args:
        given: What is known of the engines.
        version: The picker's.
        api_version: Of its configuration.
        parameters: Of a tier's scorer, beside its capacity.
        sections: What else the document has.

    Raises:
        NoScorerError: No scorer has a weight and a tier.
    """
    tiers = prefix_tiers(given, given.engine_block_tokens)
    plugins = [*load_plugins(given.weights)]
    for tier in tiers:
        capacity = {} if tier.entries is None else {"lruCapacityPerServer": tier.entries}
        name = f"{tier.name}-prefix-cache-scorer"
        plugins.append(Plugin(PREFIX, name, {**parameters(tier), **capacity}, weight=tier.weight))
    return PickerConfig(
        version=version,
        tokens_per_entry=given.engine_block_tokens,
        entries=entries_of(tiers),
        text=render(api_version, plugins, sections=sections),
        gpu_from_metrics=unknown_gpu(tiers),
    )
