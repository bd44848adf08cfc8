"""The endpoint picker, worked out."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.tier import Tier
from kvtier_operator.planning.pod.compute import Compute


@dataclass(frozen=True, slots=True)
class PickerResources(Compute):
    """The picker's compute resources.

    Attributes:
        memory_bytes: What its index may take with everything around it.
    """

    memory_bytes: int


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """kvtier's own gateway.

    Attributes:
        image: Envoy's image.
        compute: Its requests and limits.
        heap_bytes: Memory from which on it takes no more requests.
        held_bytes: What is held of a request at most; a body that is held whole is no larger.
        url: Base URL for clients in the cluster.
    """

    image: str
    compute: Compute
    heap_bytes: int
    held_bytes: int
    url: str


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
