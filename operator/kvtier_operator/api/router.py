"""`spec.router`: the endpoint picker and the way to it."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.scheduling import (
    Affinity,
    NodeSelector,
    PriorityClassName,
    ResourceRequirements,
    Tolerations,
)

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOST: Final = rf"^(\*\.)?{_LABEL}(\.{_LABEL})*$"
"""As Gateway API's (v1, apis/v1/shared_types.go, Hostname), which would refuse the route."""


class Flavor(StrEnum):
    """Which endpoint picker routes."""

    LLM_D = "llm-d"
    GAIE = "gaie"
    BUILTIN = "builtin"


class FailureMode(StrEnum):
    """What the gateway does when the picker does not answer."""

    FAIL_OPEN = "FailOpen"
    FAIL_CLOSE = "FailClose"


class GatewayProvider(StrEnum):
    """Gateway implementations that need objects of their own beside the HTTPRoute."""

    NONE = "none"
    ISTIO = "istio"
    GKE = "gke"
    KGATEWAY = "kgateway"
    AGENTGATEWAY = "agentgateway"


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
        return (
            self.queue + self.kv_cache_utilization + self.gpu_prefix + self.cpu_prefix + self.disk_prefix > 0
        )


class ParentRef(ApiModel):
    """The Gateway that takes the requests."""

    name: str = Field(description="Name of the Gateway.", min_length=1, max_length=253)
    namespace: str | None = Field(
        None,
        description="Namespace of the Gateway; the resource's own when empty.",
        min_length=1,
        max_length=63,
        pattern=f"^{_LABEL}$",
    )
    section_name: str | None = Field(
        None,
        description="Listener of the Gateway; all when empty.",
        min_length=1,
        max_length=253,
        pattern=rf"^{_LABEL}(\.{_LABEL})*$",
    )


class Gateway(ApiModel):
    """Makes the HTTPRoute and what the provider needs beside it."""

    parent_ref: ParentRef = Field(description="The Gateway that takes the requests.")
    hostnames: list[Annotated[str, Field(min_length=1, max_length=253, pattern=_HOST)]] = Field(
        default_factory=list,
        description="Host names the route serves, such as llm.example.com or *.example.com; all when empty.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    provider: GatewayProvider = Field(
        GatewayProvider.NONE,
        description="Gateway implementation, for the objects that it needs beside the route.",
    )


class RouterSpec(ApiModel):
    """The endpoint picker."""

    flavor: Flavor = Field(
        Flavor.LLM_D,
        description="llm-d: llm-d-router; gaie: the Gateway API inference extension's picker; builtin: kvtier's own.",
    )
    version: str | None = Field(
        None,
        description="Version of the flavour's picker, which decides its configuration's form: llm-d from 0.9, gaie 1.2 to 1.5. Empty: the one kvtier was tested with.",
        pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$",
        max_length=32,
    )
    image: str | None = Field(
        None,
        description="Picker image; chosen by flavour and version when empty.",
        min_length=1,
        max_length=512,
    )
    replicas: int = Field(
        1,
        description="Pickers; each keeps an index of its own, so more than one divides what it knows.",
        ge=1,
        le=16,
    )
    kv_events: bool = Field(
        default=False,
        description="builtin: the engines publish what their caches take in and let go (vLLM's KV events), and the picker follows them instead of guessing.",
    )
    weights: Weights = Field(default_factory=Weights, description="Weights of the scorers.")
    failure_mode: FailureMode = Field(
        FailureMode.FAIL_OPEN, description="What the gateway does when the picker does not answer."
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="The picker's compute resources, over kvtier's own: 500m of CPU and what its index needs of memory as requests, twice that memory as a limit. A value given here stands; what is left out stays within it.",
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)
    affinity: Affinity = None
    priority_class_name: PriorityClassName = None
    gateway: Gateway | None = Field(
        None, description="Makes the HTTPRoute; leave out to bring your own route."
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
        "self.flavor == 'builtin' || !self.kvEvents",
        "only kvtier's own picker is configured for KV events; set flavor to builtin or leave kvEvents out",
        field=".kvEvents",
    )
    def events_have_a_reader(self) -> bool:
        """Other pickers would leave the engines publishing for nobody."""
        return self.flavor is Flavor.BUILTIN or not self.kv_events
