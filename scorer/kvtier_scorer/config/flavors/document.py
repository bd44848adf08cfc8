"""The EndpointPickerConfig document that every flavour shares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import yaml

from kvtier_scorer.config.errors import NoScorerError
from kvtier_scorer.config.scorer_names import PLUGINS

KIND: Final = "EndpointPickerConfig"
PREFIX: Final = "prefix-cache-scorer"
APPROX_PREFIX_PRODUCER: Final = "approx-prefix-cache-producer"
# libyaml where PyYAML was built with it: an operator renders thousands of these
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
PICKER: Final = "max-score-picker"
PROFILE_HANDLER: Final = "single-profile-handler"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin of the picker.

    Attributes:
        kind: Its registered type.
        name: Its name; the type where empty.
        parameters: Its parameters.
        weight: Weight as a scorer of the profile; None for a plugin that does not score.
    """

    kind: str
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    weight: int | None = None


def render(
    api_version: str,
    plugins: Iterable[Plugin],
    comments: Iterable[str] = (),
    sections: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The document as YAML.

    Args:
        api_version: Of the configuration.
        plugins: All of them but those that are always there.
        comments: Lines before it.
        sections: What else the document has.

    Scorers of weight 0 must already be left out. The profile handler and the picker that upstream adds
    by itself when they are missing (pkg/epp/config/loader, applySystemDefaults) are written out.

    Raises:
        NoScorerError: No plugin scores.
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
