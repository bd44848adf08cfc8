"""Plugins and the scheduling profile, put together to scorers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.errors import NoScorerError
from kvtier_scorer.config.flavors.document import (
    PICKER,
    PREFIX,
    PROFILE_HANDLER,
)
from kvtier_scorer.config.scorer_names import PLUGINS, PREFIX_SCORERS
from kvtier_scorer.config.settings.document import (
    Document,
    MaxScoreParameters,
    NoParameters,
    PluginEntry,
    PrefixParameters,
    Reference,
)
from kvtier_scorer.config.settings.model import (
    DEFAULT_MAX_PREFIX_TOKENS,
    PrefixSettings,
    ScorerSetting,
)
from kvtier_scorer.config.settings.sections import Section
from kvtier_scorer.config.settings.strict_fields import convert, field_error

_PARAMETERS: Final[Mapping[str, type[Section]]] = {
    **dict.fromkeys(PLUGINS.values(), NoParameters),
    PREFIX: PrefixParameters,
    PICKER: MaxScoreParameters,
    PROFILE_HANDLER: NoParameters,
}
_NAMES: Final = {plugin: name for name, plugin in PLUGINS.items()}
_DEFAULT_WEIGHT: Final = 1.0
"""Of a scorer whose reference gives none (gateway-api-inference-extension v1.5.0, pkg/epp/config/loader)."""

_Declared = Mapping[str, tuple[str, PluginEntry, Section]]


def scorers_and_prefix(document: Document) -> tuple[tuple[ScorerSetting, ...], PrefixSettings | None]:
    """The scorers of the one profile, and what its prefix scorers share.

    Raises:
        NoScorerError: No scorer has a weight.
        PickerConfigError: A plugin is unknown, missing, named twice or left unused, or two contradict.
    """
    declared = _declared(document.plugins)
    profiles = document.scheduling_profiles
    if len(profiles) != 1:
        raise field_error("schedulingProfiles", f"must have one profile, not {len(profiles)}")
    references = profiles[0].plugins
    path = "schedulingProfiles[0].plugins"
    _check_references(declared, references, path)

    weighted: dict[str, float] = {}
    prefixes: list[tuple[str, PrefixParameters, bool]] = []
    for place, reference in enumerate(references):
        where, plugin, given = declared[reference.plugin_ref]
        name = _scorer(plugin, given)
        if name is None:
            if reference.weight is not None:
                raise field_error(f"{path}[{place}].weight", f"{plugin.type} is no scorer; leave it out")
            continue
        weight = _DEFAULT_WEIGHT if reference.weight is None else reference.weight
        if weight < 0:
            raise field_error(f"{path}[{place}].weight", f"must be a number, 0 or more, not {weight}")
        if name in weighted:
            raise field_error(where, f"a second {name} scorer; keep one")
        weighted[name] = weight
        if isinstance(given, PrefixParameters):
            prefixes.append((where, given, weight > 0))
    scorers = tuple(ScorerSetting(name, weight) for name, weight in weighted.items() if weight)
    if not scorers:
        raise NoScorerError(f"{path}: no scorer is left; give one a weight above 0")
    return scorers, _prefix(prefixes)


def _declared(plugins: Sequence[PluginEntry]) -> _Declared:
    declared: dict[str, tuple[str, PluginEntry, Section]] = {}
    for place, plugin in enumerate(plugins):
        where = f"plugins[{place}]"
        if plugin.type not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise field_error(f"{where}.type", f"unknown plugin {plugin.type!r}; known are {known}")
        if plugin.reference in declared:
            raise field_error(f"{where}.name", f"{plugin.reference!r} is there twice; give it another name")
        given = convert(plugin.parameters or {}, _PARAMETERS[plugin.type], f"{where}.parameters")
        if isinstance(given, PrefixParameters):
            given.check(f"{where}.parameters")
        declared[plugin.reference] = (where, plugin, given)
    return declared


def _check_references(declared: _Declared, references: Iterable[Reference], path: str) -> None:
    seen: set[str] = set()
    for place, reference in enumerate(references):
        name = reference.plugin_ref
        if name not in declared:
            known = ", ".join(declared)
            raise field_error(f"{path}[{place}].pluginRef", f"no plugin is named {name!r}; there are {known}")
        if name in seen:
            raise field_error(f"{path}[{place}].pluginRef", f"{name!r} is there twice; keep one")
        if declared[name][1].type == PROFILE_HANDLER:
            raise field_error(f"{path}[{place}].pluginRef", f"{PROFILE_HANDLER} belongs to no profile")
        seen.add(name)
    for name, (where, plugin, _) in declared.items():
        if name not in seen and plugin.type != PROFILE_HANDLER:
            raise field_error(where, f"{name!r} is in no profile; add it to {path} or leave it out")


def _scorer(plugin: PluginEntry, given: Section) -> str | None:
    if isinstance(given, PrefixParameters):
        return PREFIX_SCORERS[Tier.of(given.tier)]
    return _NAMES.get(plugin.type)


def _prefix(prefixes: Sequence[tuple[str, PrefixParameters, bool]]) -> PrefixSettings | None:
    if not prefixes:
        return None
    first_where, first, _ = prefixes[0]
    for where, given, _ in prefixes[1:]:
        for name, one, other in (
            ("blockSizeTokens", first.block_size_tokens, given.block_size_tokens),
            ("maxPrefixTokensToMatch", first.max_prefix_tokens_to_match, given.max_prefix_tokens_to_match),
        ):
            if one != other:
                raise field_error(
                    f"{where}.parameters.{name}",
                    f"{other} differs from {one} of {first_where}; the tiers are looked up together",
                )
    entries = {Tier.of(given.tier): given.lru_capacity_per_server for _, given, weighs in prefixes if weighs}
    if not entries:
        return None
    max_tokens = first.max_prefix_tokens_to_match or DEFAULT_MAX_PREFIX_TOKENS
    return PrefixSettings(first.block_size_tokens, max_tokens, entries)
