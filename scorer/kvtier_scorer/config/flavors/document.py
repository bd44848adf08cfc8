"""The EndpointPickerConfig document that every flavour shares, and its prefix scorers, one a tier."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import yaml

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import (
    PLUGINS,
    PREFIX_SCORERS,
    NoScorerError,
    PickerConfig,
    PickerInput,
    UnsupportedVersionError,
    entries_for,
)

KIND: Final = "EndpointPickerConfig"
PREFIX: Final = "prefix-cache-scorer"
APPROX_PREFIX_PRODUCER: Final = "approx-prefix-cache-producer"
# libyaml where PyYAML was built with it: an operator renders thousands of these
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
PICKER: Final = "max-score-picker"
PROFILE_HANDLER: Final = "single-profile-handler"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin of the picker: its registered type, its name (the type where empty), and its parameters."""

    kind: str
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    weight: int | None = None  # weight as a scorer of the profile; None for a plugin that does not score


def render(
    api_version: str,
    plugins: Iterable[Plugin],
    comments: Iterable[str] = (),
    sections: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The document as YAML, with comments before it and further sections.

    Scorers of weight 0 must already be left out. The profile handler and the picker that upstream adds
    by itself when they are missing (pkg/epp/config/loader, applySystemDefaults) are written out. Raises
    NoScorerError: no plugin scores.
    """
    plugins = tuple(plugins)
    scorers = [plugin for plugin in plugins if plugin.weight is not None]
    if not scorers:
        raise NoScorerError("every weight is 0 or belongs to a tier that does not exist; give one a weight")
    everything = (*plugins, Plugin(PICKER), Plugin(PROFILE_HANDLER))
    references: list[dict[str, Any]] = [
        {"pluginRef": plugin.name or plugin.kind, "weight": plugin.weight} for plugin in scorers
    ]
    document = {
        "apiVersion": api_version,
        "kind": KIND,
        "plugins": [_entry(plugin) for plugin in everything],
        "schedulingProfiles": [{"name": "default", "plugins": [*references, {"pluginRef": PICKER}]}],
        **sections,
    }
    header = "".join(f"# {comment}\n" for comment in comments)
    return header + yaml.dump(document, Dumper=_DUMPER, sort_keys=False)


def _entry(plugin: Plugin) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": plugin.kind}
    if plugin.name:
        entry["name"] = plugin.name
    if plugin.parameters:
        entry["parameters"] = dict(plugin.parameters)
    return entry


def load_plugins(weights: Mapping[str, int]) -> tuple[Plugin, ...]:
    """The plugins of a picker's scorers that are not a tier's, without those of weight 0."""
    weighted = ((kind, weights.get(name, 0)) for name, kind in PLUGINS.items())
    return tuple(Plugin(kind, weight=weight) for kind, weight in weighted if weight)


@dataclass(frozen=True, slots=True)
class PrefixTier:
    """One tier that a prefix scorer of some weight stands for."""

    tier: Tier
    weight: int
    entries: int | None  # LRU capacity; None where the picker asks the engine

    @property
    def name(self) -> str:
        """The tier's, such as `cpu`."""
        return self.tier.label


def prefix_tiers(inputs: PickerInput, tokens_per_entry: int) -> tuple[PrefixTier, ...]:
    """The tiers that exist and have a weight, fastest first. Every engine has a device cache."""
    weights, tokens = inputs.weights, inputs.tokens
    return tuple(
        PrefixTier(tier, weight, entries_for(tokens[tier], tokens_per_entry))
        for tier, scorer in PREFIX_SCORERS.items()
        if tier in tokens and (weight := weights.get(scorer, 0))
    )


def unknown_gpu(tiers: tuple[PrefixTier, ...]) -> bool:
    """Whether a scorer stands for a device cache whose size the picker has to ask for."""
    return any(tier.entries is None for tier in tiers)


def per_tier_config(
    inputs: PickerInput,
    version: str,
    api_version: str,
    parameters: Callable[[PrefixTier], Mapping[str, Any]],
    sections: Mapping[str, Any] = MappingProxyType({}),
) -> PickerConfig:
    """The configuration, in entries of the engine's own blocks.

    `parameters` are a tier's scorer's, beside its capacity; `sections` what else the document has.
    """
    tiers = prefix_tiers(inputs, inputs.engine_block_tokens)
    plugins = [*load_plugins(inputs.weights)]
    for tier in tiers:
        capacity = {} if tier.entries is None else {"lruCapacityPerServer": tier.entries}
        name = f"{tier.name}-prefix-cache-scorer"
        plugins.append(Plugin(PREFIX, name, {**parameters(tier), **capacity}, weight=tier.weight))
    return PickerConfig(
        version=version,
        tokens_per_entry=inputs.engine_block_tokens,
        entries={tier.tier: tier.entries for tier in tiers},
        text=render(api_version, plugins, sections=sections),
        gpu_from_metrics=unknown_gpu(tiers),
    )


def minor_version(version: str) -> tuple[int, int]:
    """Major and minor of `1.4`, `v1.4` or `v1.4.2`. Raises UnsupportedVersionError: it is not a version."""
    parts = version.removeprefix("v").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        raise UnsupportedVersionError(f"{version!r} is not a version; write major.minor, as in 1.4") from None
