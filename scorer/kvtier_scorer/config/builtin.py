"""kvtier's own picker: one prefix scorer a tier, in blocks of the engine."""

from typing import Any, Final

from kvtier_scorer.config.document import PREFIX, Plugin, load_plugins, render
from kvtier_scorer.config.errors import UnsupportedVersionError
from kvtier_scorer.config.model import PickerConfig, PickerInput
from kvtier_scorer.config.tiers import entries_of, prefix_tiers
from kvtier_scorer.config.version import minor_version

API_VERSION: Final = "kvtier.dev/v1alpha1"
TESTED_VERSION: Final = "0.1.0"


def builtin_config(given: PickerInput) -> PickerConfig:
    """The configuration for kvtier's own picker.

    Raises:
        UnsupportedVersionError: The version is not this package's.
        NoScorerError: No scorer has a weight and a tier.
    """
    version = given.version or TESTED_VERSION
    if minor_version(version) != minor_version(TESTED_VERSION):
        raise UnsupportedVersionError(
            f"kvtier's own picker {version} is not this release's; leave it out or use {TESTED_VERSION}"
        )
    tiers = prefix_tiers(given, given.engine_block_tokens)
    plugins = [*load_plugins(given.weights.queue, given.weights.kv_cache_utilization)]
    for tier in tiers:
        parameters: dict[str, Any] = {"tier": tier.name, "blockSizeTokens": given.engine_block_tokens}
        if tier.entries is not None:
            parameters["lruCapacityPerServer"] = tier.entries
        plugins.append(Plugin(PREFIX, f"{tier.name}-prefix-cache-scorer", parameters, weight=tier.weight))
    return PickerConfig(
        version=version,
        tokens_per_entry=given.engine_block_tokens,
        entries=entries_of(tiers),
        text=render(API_VERSION, plugins),
    )
