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
    """The machine a local run uses; None where a figure is not known."""

    memory_bytes: int | None = None  # ordinary memory: without what is reserved for explicit huge pages
    reserved_bytes: int = 0  # of explicit huge pages of all sizes, used or not
    available_bytes: int | None = None  # ordinary memory that could be taken now
    shm_bytes: int | None = None  # size of /dev/shm
    free_hugepages: Mapping[int, int] | None = None  # free explicit huge pages, by page size in bytes
    memlock_bytes: int | None = None  # RLIMIT_MEMLOCK; None for unlimited or not known
    disk_free_bytes: int | None = None  # free space where a disk tier would live
    disk_own_bytes: int = 0  # what lies there already in the tier's own folders
    cores: tuple[int, ...] = ()  # numbers of the cores that a process may use


@dataclass(frozen=True, slots=True)
class EngineTokens:
    """Tokens that the tiers of one running engine pod hold, as it says; None where it does not say."""

    by_tier: Mapping[Tier, int] = field(default_factory=dict)  # of those tiers that it speaks of
    block: int | None = None  # tokens of one block of the device's cache, which is no tier's size
    gpu_blocks: int | None = None  # blocks of the device's cache, whatever they keep


@dataclass(frozen=True, slots=True)
class TierFindings:
    """What a running engine pod has found out of a tier beside its size; None where it does not say."""

    pinned_bytes: int | None = None  # locked in memory, on a GPU page-locked for DMA
    pays: bool | None = None  # whether it is read sooner than the engine computes


@dataclass(frozen=True, slots=True)
class PrefixFindings:
    """What a running engine says of a prefix of its resource."""

    tokens: int  # as it counts them
    # of those, found in a cache when it asked for it; None where that is not told
    cached_tokens: int | None = None


EngineFindings = Mapping[Tier, TierFindings]
"""Of those tiers of which something was found out."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Facts gathered before planning."""

    # the model's Hugging Face `config.json`, parsed; None if it could not be had
    model_config: Mapping[str, Any] | None = None
    model_config_source: str = ""  # where it came from, for the report
    model_config_missing: str = ""  # why the configuration could not be had where it was looked for
    machine: Machine | None = None  # the machine of a local run; None when planning for a cluster
    weights_bytes: int | None = None  # size of the model's weight files; None if they were not seen
    nodes: tuple[Node, ...] | None = None  # the cluster's nodes; None when planning without a cluster
    # what a running engine of this very spec says; None where none was asked
    engine: EngineTokens | None = None
    # where this cluster gets the images from that no resource names
    images: ImageSource = field(default_factory=ImageSource)
    policy: OwnerPolicy = field(default_factory=OwnerPolicy)  # what its owner lets resources ask for
    # the `config.json` of the model that drafts tokens, parsed; None if it could not be had
    draft_config: Mapping[str, Any] | None = None
    draft_config_source: str = ""  # where it came from, for the report
    draft_weights_bytes: int | None = None  # size of its weight files; None if they were not seen
    # whether the cluster has KEDA; None when planning without a cluster
    serves_scaled_objects: bool | None = None
