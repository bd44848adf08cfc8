"""llm-d-router's configuration, as strict as llm-d-router itself, which is run only where it is given.

Sources, llm-d/llm-d-router v0.9.0 and v0.10.0: apix/config/v1alpha1/endpointpickerconfig_types.go (the
document), pkg/epp/config/loader/{configloader,defaults,validation}.go (what is refused beyond unknown
fields), and the parameter types of the plugins below, each under pkg/epp/framework/plugins. Both the document
and the parameters are decoded strictly; plugins without parameters take none into account, and none are taken
here.
"""

from typing import Any, Final

import yaml
from pydantic import Field, model_validator
from tests.unit.scorer.config.flavors.strict import (
    MaxScorePicker,
    Nothing,
    Producer,
    Scorer010,
    Scorer09,
    Strict,
)

API_VERSION: Final = "llm-d.ai/v1alpha1"


class Plugin(Strict):
    """PluginSpec."""

    type: str = Field(min_length=1)
    name: str = ""
    parameters: dict[str, Any] | None = None

    @property
    def known_as(self) -> str:
        """The name that others refer to it by (applyStaticDefaults)."""
        return self.name or self.type


class Reference(Strict):
    """SchedulingPlugin; a weight is any float64, and 1.0 where none is given."""

    plugin_ref: str = Field(min_length=1)
    weight: float | None = None


class Profile(Strict):
    """SchedulingProfile."""

    name: str = Field(min_length=1)
    plugins: list[Reference]


class Named(Strict):
    """ParserConfig, SaturationDetectorConfig, DiscoveryConfig, DataLayerExtractor."""

    plugin_ref: str


class Source(Strict):
    """DataLayerSource."""

    plugin_ref: str
    extractors: list[Named]


class DataLayer(Strict):
    """DataLayerConfig of 0.9."""

    inject_defaults: bool | None = None
    sources: list[Source] = Field(default_factory=list)
    discovery: Named | None = None


class DataLayer010(DataLayer):
    """DataLayerConfig of 0.10."""

    cross_replica_syncer_plugin_ref: str = ""
    cross_replica_sync_interval: str | None = None


class RequestHandler(Strict):
    """RequestHandlerConfig."""

    parsers: list[Named] = Field(default_factory=list)


class PriorityBand(Strict):
    """PriorityBandConfig."""

    priority: int
    max_bytes: int | str | None = None
    max_requests: int | str | None = None
    fairness_policy_ref: str = ""
    ordering_policy_ref: str = ""


class FlowControl(Strict):
    """FlowControlConfig of 0.9."""

    max_bytes: int | str | None = None
    max_requests: int | str | None = None
    default_request_ttl: str | None = Field(None, alias="defaultRequestTTL")
    default_priority_band: PriorityBand | None = None
    default_negative_priority_band: PriorityBand | None = None
    priority_bands: list[PriorityBand] = Field(default_factory=list)
    usage_limit_policy_plugin_ref: str = ""
    saturation_detector: Named | None = None


class FlowControl010(FlowControl):
    """FlowControlConfig of 0.10."""

    enable_eviction: bool = False


class Document(Strict):
    """EndpointPickerConfig of 0.9, with what its loader refuses."""

    api_version: str = Field(pattern=f"^{API_VERSION}$")
    kind: str = Field(pattern="^EndpointPickerConfig$")
    feature_gates: list[str] = Field(default_factory=list)
    plugins: list[Plugin]
    scheduling_profiles: list[Profile]
    data_layer: DataLayer | None = None
    flow_control: FlowControl | None = None
    request_handler: RequestHandler | None = None
    saturation_detector: Named | None = None
    parser: Named | None = None

    @model_validator(mode="after")
    def _names_are_different(self) -> "Document":
        names = [plugin.known_as for plugin in self.plugins]
        if len(names) != len(set(names)):
            raise ValueError("duplicate plugin name")
        profiles = [profile.name for profile in self.scheduling_profiles]
        if len(profiles) != len(set(profiles)):
            raise ValueError("duplicate profile name")
        return self

    @model_validator(mode="after")
    def _references_have_a_target(self) -> "Document":
        names = {plugin.known_as for plugin in self.plugins}
        for profile in self.scheduling_profiles:
            for reference in profile.plugins:
                if reference.plugin_ref not in names:
                    raise ValueError(f"{profile.name} references undefined plugin {reference.plugin_ref}")
        return self

    @model_validator(mode="after")
    def _one_handler_and_one_picker(self) -> "Document":
        handlers = [plugin for plugin in self.plugins if plugin.type == _HANDLER]
        if len(handlers) > 1:
            raise ValueError("multiple profile handlers")
        if handlers and len(self.scheduling_profiles) > 1:
            raise ValueError("single-profile-handler cannot have several profiles")
        pickers = {plugin.known_as for plugin in self.plugins if plugin.type == _PICKER}
        for profile in self.scheduling_profiles:
            if len([plugin for plugin in profile.plugins if plugin.plugin_ref in pickers]) > 1:
                raise ValueError("a profile has one picker")
        return self


class Document010(Document):
    """EndpointPickerConfig of 0.10."""

    data_layer: DataLayer010 | None = None
    flow_control: FlowControl010 | None = None


class Producer09(Producer):
    """approximateprefix/types.go, config; `blockSize` without `blockSizeTokens` is an error of its own."""

    block_size: int = 0


_HANDLER: Final = "single-profile-handler"
_PICKER: Final = "max-score-picker"
_PRODUCER: Final = "approx-prefix-cache-producer"
_SCORER: Final = "prefix-cache-scorer"
_PLAIN: Final[dict[str, type[Strict]]] = {
    "queue-scorer": Nothing,
    "kv-cache-utilization-scorer": Nothing,
    _HANDLER: Nothing,
    _PICKER: MaxScorePicker,
    _PRODUCER: Producer09,
}
VERSIONS: Final[dict[str, tuple[type[Document], dict[str, type[Strict]]]]] = {
    "0.9": (Document, {**_PLAIN, _SCORER: Scorer09}),
    "0.10": (Document010, {**_PLAIN, _SCORER: Scorer010}),
}


def load(version: str, text: str) -> Document:
    """Loads a configuration as that version would.

    Args:
        version: A key of `VERSIONS`.
        text: The EndpointPickerConfig.

    Raises:
        ValueError: It would be refused: pydantic's own for a field, otherwise with the reason.
    """
    model, types = VERSIONS[version]
    document = model.model_validate(yaml.safe_load(text))
    producers = {plugin.known_as for plugin in document.plugins if plugin.type == _PRODUCER}
    for plugin in document.plugins:
        if plugin.type not in types:
            raise ValueError(f"plugin type {plugin.type} is not registered")
        parameters = types[plugin.type].model_validate(plugin.parameters or {})
        # what a scorer consumes, some producer must produce (the data layer's dependency graph)
        if isinstance(parameters, Scorer09) and parameters.prefix_match_info_producer_name not in producers:
            raise ValueError(f"nothing produces {parameters.prefix_match_info_producer_name}")
    return document
