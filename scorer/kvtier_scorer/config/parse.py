"""Reads the configuration of kvtier's own picker: what `flavors/builtin.py` renders, or what a person wrote.

Strict, as the other pickers are: an unknown field is refused rather than ignored, and each error is one line
that begins with the field's path.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config import settings
from kvtier_scorer.config.contract import HintPolicy, ShareFrom
from kvtier_scorer.config.flavors.builtin import API_VERSION
from kvtier_scorer.config.flavors.document import KIND, PICKER, PREFIX, PROFILE_HANDLER
from kvtier_scorer.config.model import PLUGINS, PREFIX_SCORERS, NoScorerError
from kvtier_scorer.config.settings import PickerSettings, PrefixSettings
from kvtier_scorer.config.strict import convert, field_error, load_mapping

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Whole = Annotated[int, msgspec.Meta(ge=1, le=1 << 48)]
_NAMES: Final = {plugin: name for name, plugin in PLUGINS.items()}
_DEFAULT_WEIGHT: Final = 1.0
"""Of a scorer whose reference gives none (gateway-api-inference-extension v1.5.0, pkg/epp/config/loader)."""


class PluginEntry(settings.Section, frozen=True, kw_only=True):
    """One of `plugins`; its name is its type where left out."""

    type: Name
    name: Name | None = None
    parameters: dict[str, Any] | None = None

    @property
    def reference(self) -> str:
        """What a profile calls it."""
        return self.name or self.type


class Reference(settings.Section, frozen=True, kw_only=True):
    """One plugin of a profile."""

    plugin_ref: Name
    weight: float | None = None


class Profile(settings.Section, frozen=True, kw_only=True):
    """One of `schedulingProfiles`."""

    name: Name
    plugins: Annotated[tuple[Reference, ...], msgspec.Meta(min_length=1)]


class Document(settings.Section, frozen=True, kw_only=True):
    """The whole document."""

    api_version: str
    kind: str
    plugins: Annotated[tuple[PluginEntry, ...], msgspec.Meta(min_length=1)]
    scheduling_profiles: tuple[Profile, ...]
    affinity: settings.Affinity = settings.Affinity()
    shedding: settings.Shedding = settings.Shedding()
    metrics: settings.Metrics = settings.Metrics()
    events: settings.Events = settings.Events()
    tokenization: settings.Tokenization = settings.Tokenization()
    limits: settings.Limits = settings.Limits()
    hints: HintPolicy = HintPolicy.ACCEPT
    share_from: ShareFrom = ShareFrom.HEADER
    retained: Annotated[float, msgspec.Meta(ge=0, le=1)] = RETAINED_SHARE


class NoParameters(settings.Section, frozen=True, kw_only=True):
    """The parameters of a plugin that takes none."""


class MaxScoreParameters(settings.Section, frozen=True, kw_only=True):
    """The parameters of `max-score-picker`: this picker names one endpoint."""

    max_num_of_endpoints: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


class PrefixParameters(settings.Section, frozen=True, kw_only=True):
    """The parameters of `prefix-cache-scorer`."""

    tier: str
    block_size_tokens: Whole  # tokens in one block of the engine, one entry of the index
    lru_capacity_per_server: Whole | None = None  # entries a pod; left out where the engine has to be asked
    max_prefix_tokens_to_match: Whole | None = None  # what of a longer prompt is looked at

    def check(self, path: str) -> None:
        """Raises PickerConfigError unless the tier is one that a pod has."""
        names = [tier.label for tier in OF_A_POD]
        if self.tier not in names:
            raise field_error(f"{path}.tier", f"must be {' or '.join(names)}, not {self.tier!r}")


_PARAMETERS: Final[Mapping[str, type[settings.Section]]] = {
    **dict.fromkeys(PLUGINS.values(), NoParameters),
    PREFIX: PrefixParameters,
    PICKER: MaxScoreParameters,
    PROFILE_HANDLER: NoParameters,
}

_ByReference = Mapping[str, tuple[str, PluginEntry, settings.Section]]


def _scorers_and_prefix(
    document: Document,
) -> tuple[tuple[settings.ScorerSetting, ...], PrefixSettings | None]:
    """The scorers of the one profile, and what its prefix scorers share."""
    plugins = _by_reference(document.plugins)
    profiles = document.scheduling_profiles
    if len(profiles) != 1:
        raise field_error("schedulingProfiles", f"must have one profile, not {len(profiles)}")
    references = profiles[0].plugins
    path = "schedulingProfiles[0].plugins"
    _check_references(plugins, references, path)

    weighted: dict[str, float] = {}
    prefixes: list[tuple[str, PrefixParameters, bool]] = []
    for place, reference in enumerate(references):
        where, plugin, parameters = plugins[reference.plugin_ref]
        if isinstance(parameters, PrefixParameters):
            name: str | None = PREFIX_SCORERS[Tier.of(parameters.tier)]
        else:
            name = _NAMES.get(plugin.type)
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
        if isinstance(parameters, PrefixParameters):
            prefixes.append((where, parameters, weight > 0))
    scorers = tuple(settings.ScorerSetting(name, weight) for name, weight in weighted.items() if weight)
    if not scorers:
        raise NoScorerError(f"{path}: no scorer is left; give one a weight above 0")
    return scorers, _prefix(prefixes)


def _by_reference(entries: Sequence[PluginEntry]) -> _ByReference:
    plugins: dict[str, tuple[str, PluginEntry, settings.Section]] = {}
    for place, plugin in enumerate(entries):
        where = f"plugins[{place}]"
        if plugin.type not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise field_error(f"{where}.type", f"unknown plugin {plugin.type!r}; known are {known}")
        if plugin.reference in plugins:
            raise field_error(f"{where}.name", f"{plugin.reference!r} is there twice; give it another name")
        parameters = convert(plugin.parameters or {}, _PARAMETERS[plugin.type], f"{where}.parameters")
        if isinstance(parameters, PrefixParameters):
            parameters.check(f"{where}.parameters")
        plugins[plugin.reference] = (where, plugin, parameters)
    return plugins


def _check_references(plugins: _ByReference, references: Iterable[Reference], path: str) -> None:
    seen: set[str] = set()
    for place, reference in enumerate(references):
        name = reference.plugin_ref
        if name not in plugins:
            known = ", ".join(plugins)
            raise field_error(f"{path}[{place}].pluginRef", f"no plugin is named {name!r}; there are {known}")
        if name in seen:
            raise field_error(f"{path}[{place}].pluginRef", f"{name!r} is there twice; keep one")
        if plugins[name][1].type == PROFILE_HANDLER:
            raise field_error(f"{path}[{place}].pluginRef", f"{PROFILE_HANDLER} belongs to no profile")
        seen.add(name)
    for name, (where, plugin, _) in plugins.items():
        if name not in seen and plugin.type != PROFILE_HANDLER:
            raise field_error(where, f"{name!r} is in no profile; add it to {path} or leave it out")


def _prefix(prefixes: Sequence[tuple[str, PrefixParameters, bool]]) -> PrefixSettings | None:
    if not prefixes:
        return None
    first_where, first, _ = prefixes[0]
    for where, other, _ in prefixes[1:]:
        for name, one, two in (
            ("blockSizeTokens", first.block_size_tokens, other.block_size_tokens),
            ("maxPrefixTokensToMatch", first.max_prefix_tokens_to_match, other.max_prefix_tokens_to_match),
        ):
            if one != two:
                raise field_error(
                    f"{where}.parameters.{name}",
                    f"{two} differs from {one} of {first_where}; the tiers are looked up together",
                )
    entries = {Tier.of(tier.tier): tier.lru_capacity_per_server for _, tier, weighs in prefixes if weighs}
    if not entries:
        return None
    max_tokens = first.max_prefix_tokens_to_match or settings.DEFAULT_MAX_PREFIX_TOKENS
    return PrefixSettings(first.block_size_tokens, max_tokens, entries)


def parse_settings(text: str) -> PickerSettings:
    """The settings in an EndpointPickerConfig, in YAML.

    Raises NoScorerError: no scorer has a weight; PickerConfigError: it is not such a document, or something
    in it is wrong.
    """
    raw = load_mapping(text)
    # told before the fields are: with another picker's document every one of them would be unknown
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if raw.get(name) != expected:
            raise field_error(name, f"must be {expected!r}, not {raw.get(name)!r}")
    document = convert(raw, Document)
    document.metrics.check("metrics")
    document.tokenization.check("tokenization")
    document.limits.check("limits")
    scorers, prefix = _scorers_and_prefix(document)
    if document.events.enabled and document.tokenization.mode is settings.TokenizationMode.ESTIMATE:
        # events name blocks by their tokens, which an estimate never meets
        raise field_error(
            "events.enabled", "needs tokenization.mode Tokenize or Tokenizer: KV events speak of true tokens"
        )
    return PickerSettings(
        scorers=scorers,
        prefix=prefix,
        affinity=document.affinity,
        shedding=document.shedding,
        metrics=document.metrics,
        events=document.events,
        tokenization=document.tokenization,
        limits=document.limits,
        hints=document.hints,
        share_from=document.share_from,
        retained=document.retained,
    )
