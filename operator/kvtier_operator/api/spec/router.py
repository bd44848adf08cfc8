"""`spec.router`: the endpoint picker and the way to it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, cel_validation, rule
from kvtier_operator.api.formats.dns_names import DnsLabel
from kvtier_operator.api.formats.image_name import IMAGE_NAME_PATTERN
from kvtier_operator.api.formats.ip_block import IPBlock
from kvtier_operator.api.formats.quantity import ByteQuantity, parse_bytes
from kvtier_operator.api.spec.gateway import Gateway, Standalone
from kvtier_operator.api.spec.scheduling import (
    Affinity,
    NodeSelector,
    PodTemplate,
    PriorityClassName,
    ResourceRequirements,
    Tolerations,
)

VERSION_PATTERN: Final = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$"
SUPPORTED_VERSIONS: Final = ("0.9", "0.10", "1.4", "1.5")
"""Of upstream's pickers; kvtier_scorer.config has their configurations."""

_LEAST_BODY_BYTES: Final = 2**16
_MOST_BODY_BYTES: Final = 2**30


class Flavor(StrEnum):
    """Which endpoint picker routes."""

    LLM_D = "llm-d"
    GAIE = "gaie"
    BUILTIN = "builtin"


class FailureMode(StrEnum):
    """What the gateway does when the picker does not answer."""

    FAIL_OPEN = "FailOpen"
    FAIL_CLOSE = "FailClose"


class Weights(ApiModel):
    """Weights of the scorers; only their ratios matter."""

    queue: int = Field(2, description="Weight of the waiting-queue scorer.", ge=0, le=1000)
    kv_cache_utilization: int = Field(
        2, description="Weight of the KV-cache utilisation scorer.", ge=0, le=1000
    )
    gpu_prefix: int = Field(1, description="Weight of the GPU prefix scorer.", ge=0, le=1000)
    cpu_prefix: int = Field(1, description="Weight of the CPU prefix scorer.", ge=0, le=1000)
    disk_prefix: int = Field(0, description="Weight of the disk prefix scorer.", ge=0, le=1000)

    @rule(
        "self.queue + self.kvCacheUtilization + self.gpuPrefix + self.cpuPrefix + self.diskPrefix > 0",
        "at least one weight must be more than 0",
    )
    def weighs_something(self) -> bool:
        """Scores that all weigh nothing cannot tell pods apart."""
        return any(self.by_scorer().values())

    def by_scorer(self) -> Mapping[str, int]:
        """The weights by the names of the scorers (kvtier_scorer.config.model)."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class BodySize(ByteQuantity):
    """The largest body that a picker takes."""

    __slots__ = ()

    cel_rules: ClassVar = (
        cel_validation(
            f"type(self) == int ? self >= {_LEAST_BODY_BYTES} && self <= {_MOST_BODY_BYTES} : isQuantity(self) && "
            "!quantity(self).isLessThan(quantity('64Ki')) && !quantity(self).isGreaterThan(quantity('1Gi'))",
            "must be a quantity of bytes from 64Ki to 1Gi, such as 64Mi",
        ),
    )

    def _check(self) -> None:
        self.bytes = parse_bytes(self)
        if not _LEAST_BODY_BYTES <= self.bytes <= _MOST_BODY_BYTES:
            raise ValueError(f"'{self}' is no size for a body; it must be from 64Ki to 1Gi")


class NetworkPolicyOptions(ApiModel):
    """Who may ask the picker, and who may hear the engines' KV events; a network without policies ignores it."""

    enabled: bool | None = Field(
        None,
        description="Make NetworkPolicies. Empty: for the engines' KV events always, for the picker where it is known who asks: with gateway provider istio, kgateway, agentgateway or standalone, or with namespaces or ipBlocks here.",
    )
    namespaces: list[DnsLabel] = Field(
        default_factory=list,
        description="Namespaces of the gateway's proxies, beside the Gateway's and the resource's own.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    ip_blocks: list[IPBlock] = Field(
        default_factory=list,
        description="Addresses of proxies outside of the cluster's pods, such as 10.129.0.0/23.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )

    @rule(
        "!has(self.enabled) || self.enabled || ((!has(self.namespaces) || size(self.namespaces) == 0) && (!has(self.ipBlocks) || size(self.ipBlocks) == 0))",
        "namespaces and ipBlocks are of the policy that enabled: false leaves out; keep one or the other",
    )
    def peers_have_a_policy(self) -> bool:
        """Somebody who names who may ask believes that others may not."""
        return self.enabled is not False or not (self.namespaces or self.ip_blocks)


class RouterSpec(ApiModel):
    """The endpoint picker."""

    flavor: Flavor = Field(
        Flavor.LLM_D,
        description="llm-d: llm-d-router; gaie: the Gateway API inference extension's picker; builtin: kvtier's own.",
    )
    version: str | None = Field(
        None,
        description="Version of the flavour's picker, which decides its configuration's form: llm-d 0.9 and 0.10 (a later 0.x with a warning), gaie 1.4 and 1.5. Empty: the one kvtier was tested with.",
        pattern=VERSION_PATTERN,
        max_length=32,
    )
    image: str | None = Field(
        None,
        description="Picker image; chosen by flavour and version when empty.",
        min_length=1,
        max_length=512,
        pattern=IMAGE_NAME_PATTERN,
    )
    replicas: int = Field(
        1,
        description="Pickers, of which one serves: more are standbys that take over, with an empty index, when it ends; they do not serve more requests.",
        ge=1,
        le=16,
    )
    kv_events: bool = Field(
        default=False,
        description="builtin: the engines publish what their caches take in and let go (vLLM's KV events), and the picker follows them instead of guessing.",
    )
    max_body_size: BodySize | None = Field(
        None,
        description="builtin: largest body of a request, as images in it need; empty: 8Mi, or 16 bytes for each token of a longer model, up to 32Mi. The picker's memory limit follows.",
    )
    expose_endpoint: bool = Field(
        default=False,
        description="builtin: answers tell clients, in the header x-gateway-destination-endpoint-served, the address of the engine that served them. Whoever knows it can find out which engine holds a prompt.",
    )
    weights: Weights = Field(default_factory=Weights, description="Weights of the scorers.")
    failure_mode: FailureMode = Field(
        FailureMode.FAIL_OPEN, description="What the gateway does when the picker does not answer."
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="The picker's compute resources, over kvtier's own: 500m of CPU and what its index needs of memory as requests, twice that memory as a limit, or what requests under way take beside it: in the builtin picker at worst, in others a million tokens an engine. A value given here stands; what is left out stays within it.",
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)
    affinity: Affinity = None
    priority_class_name: PriorityClassName = None
    pod_template: PodTemplate = None
    gateway: Gateway | None = Field(
        None,
        description="The way in: an HTTPRoute on a Gateway, or with provider standalone an Envoy of kvtier's own; leave out to bring your own route.",
    )
    network_policy: NetworkPolicyOptions = Field(
        default_factory=NetworkPolicyOptions,
        description="Who may ask the picker and hear the engines' KV events.",
    )

    @rule(
        "self.flavor != 'builtin' || self.replicas == 1",
        "kvtier's own picker runs once: two would each know half of what the engines hold, and one that fails is passed by (failureMode); set replicas to 1",
        field=".replicas",
    )
    def builtin_runs_once(self) -> bool:
        """Upstream's pickers elect a leader; kvtier's own does not."""
        return self.flavor is not Flavor.BUILTIN or self.replicas == 1

    @rule(
        "self.flavor == 'builtin' || !has(self.maxBodySize)",
        "only kvtier's own picker has a bound for bodies; set flavor to builtin or leave maxBodySize out",
        field=".maxBodySize",
    )
    def size_has_a_reader(self) -> bool:
        """Other pickers have no such setting."""
        return self.flavor is Flavor.BUILTIN or self.max_body_size is None

    @rule(
        "self.flavor == 'builtin' || !self.exposeEndpoint",
        "only kvtier's own picker tells clients which engine served them; set flavor to builtin or leave exposeEndpoint out",
        field=".exposeEndpoint",
    )
    def endpoint_has_a_teller(self) -> bool:
        """Other pickers have no such setting."""
        return self.flavor is Flavor.BUILTIN or not self.expose_endpoint

    @rule(
        "self.flavor == 'builtin' || !self.kvEvents",
        "only kvtier's own picker is configured for KV events; set flavor to builtin or leave kvEvents out",
        field=".kvEvents",
    )
    def events_have_a_reader(self) -> bool:
        """Other pickers would leave the engines publishing for nobody."""
        return self.flavor is Flavor.BUILTIN or not self.kv_events

    @property
    def standalone(self) -> Standalone | None:
        """Settings of kvtier's own gateway; None where there is none."""
        return self.gateway.own if self.gateway else None
