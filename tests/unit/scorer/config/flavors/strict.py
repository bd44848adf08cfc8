"""What each version of each picker accepts: its configuration types, written down as strict models.

Sources: apix/config/v1alpha1/endpointpickerconfig_types.go, cmd/epp/runner/runner.go (registered plugins)
and the plugins' parameter types, in kubernetes-sigs/gateway-api-inference-extension v1.4.0, v1.5.0
and llm-d/llm-d-router v0.9.0, v0.10.0. All of them decode strictly: an unknown field is refused.
"""

from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Nothing(Strict):
    pass


class TokenBlocks(Strict):
    auto_tune: bool = True
    block_size_tokens: int = Field(16, gt=0)
    max_prefix_blocks_to_match: int = Field(256, gt=0)
    lru_capacity_per_server: int = Field(31250, gt=0)


class Producer15(Strict):
    auto_tune: bool = True
    block_size_tokens: int = Field(16, gt=0)
    max_prefix_blocks_to_match: int = 256
    max_prefix_tokens_to_match: int = Field(0, ge=0)
    lru_capacity_per_server: int = 31250


class Producer(Producer15):
    max_prefix_blocks_to_match: int = 2048
    max_prefix_tokens_to_match: int = Field(131072, ge=0)


class Scorer09(Strict):
    prefix_match_info_producer_name: str


class Scorer010(Scorer09):
    match_length_weight: float = 0.0
    match_length_scale_tokens: int = 8192


class Builtin(Strict):
    tier: Literal["gpu", "cpu", "disk"]
    block_size_tokens: int = Field(gt=0)
    lru_capacity_per_server: int | None = Field(None, gt=0)
    max_prefix_tokens_to_match: int | None = Field(None, gt=0)


class MaxScorePicker(Strict):
    max_num_of_endpoints: int = 1


class Plugin(Strict):
    type: str
    name: str | None = None
    parameters: dict[str, Any] | None = None


class Reference(Strict):
    plugin_ref: str
    weight: int | None = Field(None, gt=0)


class Profile(Strict):
    name: str
    plugins: list[Reference]


class Limits(Strict):
    max_body_bytes: int
    total_body_bytes: int


class Document(Strict):
    api_version: str
    kind: Literal["EndpointPickerConfig"]
    plugins: list[Plugin]
    scheduling_profiles: list[Profile]
    limits: Limits | None = None


COMMON: dict[str, type[Strict]] = {
    "queue-scorer": Nothing,
    "kv-cache-utilization-scorer": Nothing,
    "max-score-picker": MaxScorePicker,
    "single-profile-handler": Nothing,
}
GAIE = "inference.networking.x-k8s.io/v1alpha1"
LLM_D = "llm-d.ai/v1alpha1"
VERSIONS: dict[tuple[str, str], tuple[str, dict[str, type[Strict]]]] = {
    ("gaie", "1.4"): (GAIE, COMMON | {"prefix-cache-scorer": TokenBlocks}),
    ("gaie", "1.5"): (
        GAIE,
        COMMON | {"prefix-cache-scorer": Nothing, "approx-prefix-cache-producer": Producer15},
    ),
    ("llm-d", "0.9"): (
        LLM_D,
        COMMON | {"prefix-cache-scorer": Scorer09, "approx-prefix-cache-producer": Producer},
    ),
    ("llm-d", "0.10"): (
        LLM_D,
        COMMON | {"prefix-cache-scorer": Scorer010, "approx-prefix-cache-producer": Producer},
    ),
    ("builtin", "0.1"): ("kvtier.dev/v1alpha1", COMMON | {"prefix-cache-scorer": Builtin}),
}


def decode(flavor: str, version: str, text: str) -> Document:
    """Read a configuration as that picker would; raises where it would refuse it."""
    api_version, types = VERSIONS[flavor, version]
    document = Document.model_validate(yaml.safe_load(text))
    assert document.api_version == api_version
    assert document.limits is None or flavor == "builtin"
    for plugin in document.plugins:
        types[plugin.type].model_validate(plugin.parameters or {})
    names = [plugin.name or plugin.type for plugin in document.plugins]
    assert len(names) == len(set(names)), "plugin names must differ"
    [profile] = document.scheduling_profiles
    assert {reference.plugin_ref for reference in profile.plugins} <= set(names)
    producers = {name for name in names if name.endswith("producer")}
    bound = {(plugin.parameters or {}).get("prefixMatchInfoProducerName") for plugin in document.plugins}
    assert bound - {None} <= producers
    return document


def parameters(document: Document, name: str) -> dict[str, Any]:
    """Parameters of the plugin of that name."""
    [found] = [plugin for plugin in document.plugins if (plugin.name or plugin.type) == name]
    return found.parameters or {}


def weights(document: Document) -> dict[str, int]:
    """Weights of the scorers by plugin name."""
    return {
        reference.plugin_ref: reference.weight
        for reference in document.scheduling_profiles[0].plugins
        if reference.weight is not None
    }
