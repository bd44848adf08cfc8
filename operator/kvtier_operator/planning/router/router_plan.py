"""The endpoint picker, worked out."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RouterEntries:
    """LRU capacities of the prefix scorers, per pod; None: no such tier or weight, or taken from metrics."""

    gpu_prefix: int | None
    cpu_prefix: int | None
    disk_prefix: int | None


@dataclass(frozen=True, slots=True)
class PickerResources:
    """The picker's compute resources.

    Attributes:
        requests: As quantities.
        limits: As quantities.
        memory_bytes: What its index may take with everything around it.
    """

    requests: Mapping[str, str]
    limits: Mapping[str, str]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """The endpoint picker.

    Attributes:
        flavor: Which picker.
        version: Its version.
        image: Its image.
        tokens_per_entry: Tokens one LRU entry stands for.
        entries: LRU capacities.
        gpu_from_metrics: Whether the picker asks the engine for the size of the device's cache.
        config: EndpointPickerConfig, as YAML.
        config_hash: Hash of `config`; the picker restarts when it changes.
        resources: Its requests and limits.
    """

    flavor: str
    version: str
    image: str
    tokens_per_entry: int
    entries: RouterEntries
    gpu_from_metrics: bool
    config: str
    config_hash: str
    resources: PickerResources
