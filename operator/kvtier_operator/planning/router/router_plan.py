"""The endpoint picker, worked out."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.tier import Tier
from kvtier_operator.planning.pod.compute import Compute
from kvtier_scorer.config.contract import BodyLimits


@dataclass(frozen=True, slots=True)
class PickerResources(Compute):
    """The picker's compute resources.

    Attributes:
        memory_bytes: What its index may take with everything around it.
    """

    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ModelRouterPlan:
    """What reads, beside kvtier's own gateway, which resource's model a request asks for.

    Attributes:
        image: kvtier's own picker's, which has it.
        compute: Its requests and limits.
        routes: Other resources, by the model that requests name.
        body_limits: Of the bodies that it holds.
    """

    image: str
    compute: Compute
    routes: Mapping[str, str]
    body_limits: BodyLimits


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """kvtier's own gateway.

    Attributes:
        image: Envoy's image.
        compute: Its requests and limits.
        heap_bytes: Memory from which on it takes no more requests.
        held_bytes: What is held of a request at most; a body that is held whole is no larger.
        uploads_bytes: What is on its way of all bodies, together; None where nothing counts it.
        url: Base URL for clients in the cluster.
        model_router: What sends requests for other resources' models on; None where there are none.
    """

    image: str
    compute: Compute
    heap_bytes: int
    held_bytes: int
    uploads_bytes: int | None
    url: str
    model_router: ModelRouterPlan | None = None


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """The endpoint picker.

    Attributes:
        flavor: Which picker.
        version: Its version.
        image: Its image.
        tokens_per_entry: Tokens one LRU entry stands for.
        entries: LRU capacities of the tiers' prefix scorers, per pod; None where it is taken from metrics.
        gpu_from_metrics: Whether the picker asks the engine for the size of the device's cache.
        config: EndpointPickerConfig, as YAML.
        config_hash: Hash of `config`; the picker restarts when it changes.
        resources: Its requests and limits.
        unread: Scorers with a weight that this picker does not have.
        gateway: kvtier's own gateway before it; None where others take the requests.
    """

    flavor: str
    version: str
    image: str
    tokens_per_entry: int
    entries: Mapping[Tier, int | None]
    gpu_from_metrics: bool
    config: str
    config_hash: str
    resources: PickerResources
    unread: tuple[str, ...]
    gateway: GatewayPlan | None = None
