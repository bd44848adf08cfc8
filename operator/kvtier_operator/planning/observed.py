"""What the world looks like, as far as the planner may know it. Filled at the edges, read here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvtier_common.tier import Tier
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.images import ImageSource


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine a local run uses; None where a figure is not known.

    Attributes:
        memory_bytes: Physical memory.
        shm_bytes: Size of /dev/shm.
        free_hugepages: Free explicit huge pages, by page size in bytes.
        memlock_bytes: RLIMIT_MEMLOCK; None for unlimited or not known.
        disk_free_bytes: Free space where a disk tier would live.
        disk_own_bytes: What lies there already in the tier's own folders.
        cores: Numbers of the cores that a process may use.
    """

    memory_bytes: int | None = None
    shm_bytes: int | None = None
    free_hugepages: Mapping[int, int] | None = None
    memlock_bytes: int | None = None
    disk_free_bytes: int | None = None
    disk_own_bytes: int = 0
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineTokens:
    """Tokens that the tiers of one running engine pod hold, as it says; None where it does not say.

    Attributes:
        by_tier: Of those tiers that it speaks of.
        block: Tokens of one block of the device's cache, which is no tier's size.
        gpu_blocks: Blocks of the device's cache, whatever they keep.
    """

    by_tier: Mapping[Tier, int] = field(default_factory=dict)
    block: int | None = None
    gpu_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class TierFindings:
    """What a running engine pod has found out of a tier beside its size; None where it does not say.

    Attributes:
        pinned_bytes: Locked in memory, on a GPU page-locked for DMA.
        pays: Whether it is read sooner than the engine computes.
    """

    pinned_bytes: int | None = None
    pays: bool | None = None


EngineFindings = Mapping[Tier, TierFindings]
"""Of those tiers of which something was found out."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts gathered before planning.

    Attributes:
        model_config: The model's Hugging Face `config.json`, parsed; None if it could not be had.
        model_config_source: Where it came from, for the report.
        model_config_missing: Why the configuration could not be had where it was looked for.
        machine: The machine of a local run; None when planning for a cluster.
        weights_bytes: Size of the model's weight files; None if they were not seen.
        nodes: The cluster's nodes; None when planning without a cluster.
        engine: What a running engine of this very spec says; None where none was asked.
        images: Where this cluster gets the images from that no resource names.
        policy: What its owner lets resources ask for.
        draft_config: The `config.json` of the model that drafts tokens, parsed; None if it could not be had.
        draft_config_source: Where it came from, for the report.
        draft_weights_bytes: Size of its weight files; None if they were not seen.
        serves_scaled_objects: Whether the cluster has KEDA; None when planning without a cluster.
    """

    model_config: Mapping[str, Any] | None = None
    model_config_source: str = ""
    model_config_missing: str = ""
    machine: Machine | None = None
    weights_bytes: int | None = None
    nodes: tuple[Node, ...] | None = None
    engine: EngineTokens | None = None
    images: ImageSource = field(default_factory=ImageSource)
    policy: OwnerPolicy = field(default_factory=OwnerPolicy)
    draft_config: Mapping[str, Any] | None = None
    draft_config_source: str = ""
    draft_weights_bytes: int | None = None
    serves_scaled_objects: bool | None = None
