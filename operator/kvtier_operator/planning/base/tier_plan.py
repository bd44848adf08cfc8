"""Tiers as planned, and what a backend needs of the engine and its pod to serve them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvtier_common.tier import Tier
from kvtier_operator.planning.base.container_parts import ConfigFile, Mount, Sidecar


@dataclass(frozen=True, slots=True)
class HugepagesPlan:
    """Explicit huge pages of one engine pod: `pages` of `page_bytes`, every rank rounded up to a page."""

    page_bytes: int
    pages: int

    @property
    def bytes(self) -> int:
        """Bytes of all pages together."""
        return self.page_bytes * self.pages


@dataclass(frozen=True, slots=True)
class TierPlan:
    """One tier of one engine pod, or one that all engines share."""

    capacity_bytes: int  # all ranks together, as asked for
    # what each rank gets, rounded as the backend and the pages need it; 0 where engines share the tier
    bytes_per_rank: int
    tokens: int  # tokens that fit, all engines of the pod together
    hugepages: HugepagesPlan | None = None  # pages under the tier; None where there are none
    observed_tokens: int | None = None  # tokens that fit, as a running engine says; None where none was asked
    states_tokens: int = 0  # tokens in whose place it keeps the windows and states of its prefixes

    @property
    def held_tokens(self) -> int:
        """What an engine says that it holds: it does not tell tokens from windows and states."""
        return self.tokens + self.states_tokens


@dataclass(frozen=True, slots=True)
class TiersPlan:
    """All tiers of one engine pod."""

    # those that there are; the device's own cache only where its size is known
    by_tier: Mapping[Tier, TierPlan]
    # tokens of one block, as a running engine says; None where none was asked
    observed_block_tokens: int | None = None

    @property
    def gpu(self) -> TierPlan | None:
        """The device's own cache; None where its size is not known."""
        return self.by_tier.get(Tier.GPU)

    @property
    def cpu(self) -> TierPlan:
        """CPU memory, which is always there."""
        return self.by_tier[Tier.CPU]

    @property
    def disk(self) -> TierPlan | None:
        """Local disk; None where there is none."""
        return self.by_tier.get(Tier.DISK)

    @property
    def remote(self) -> TierPlan | None:
        """The store of all engines; None where there is none."""
        return self.by_tier.get(Tier.REMOTE)


@dataclass(frozen=True, slots=True)
class TierChunks:
    """What one tier of one engine holds, of a backend whose index shares the capacity with the chunks."""

    chunks: int  # how many
    how: str  # the formula with its numbers filled in
    memory_bytes: int  # what their index takes of memory at most
    read_s: int  # seconds that reading the index takes at start


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """What one backend needs, to be merged into the engine and the budget."""

    args: tuple[str, ...]  # vLLM arguments
    # each tier beyond the device as this backend takes it, each rank; 0 of one without
    bytes_per_rank: Mapping[Tier, int]
    tokens_per_chunk: int  # tokens it stores, finds and evicts together
    env: Mapping[str, str] = field(default_factory=dict)  # environment of the engine
    # its variables with valueFrom, and those that are composed of them, as in a pod and in their order
    env_from: tuple[Mapping[str, Any], ...] = ()
    files: tuple[ConfigFile, ...] = ()  # files of the engine
    mounts: tuple[Mount, ...] = ()  # volumes of the engine
    secrets: tuple[Mount, ...] = ()  # Secrets as folders of the engine, only read
    sidecars: tuple[Sidecar, ...] = ()  # processes beside it
    # folders that must be emptied before each start of the engine's container
    scratch_dirs: tuple[str, ...] = ()
    shm_bytes: int = 0  # what it keeps in /dev/shm
    tier_memory_bytes: int = 0  # the CPU tier outside /dev/shm and outside explicit huge pages
    # whether it asks the driver to page-lock the tier for DMA, and says whether it did
    page_locked: bool = False
    per_rank_overhead_bytes: int = 0  # its own memory beside the tier, each rank
    # what a tier holds in each engine, where that is not as many chunks as go into its bytes
    chunks: Mapping[Tier, TierChunks] = field(default_factory=dict)
    hugepages: HugepagesPlan | None = None  # explicit huge pages it takes
    notes: tuple[str, ...] = ()  # what a reader of the report should know of this backend's behaviour
    # what it rounds each chunk of the CPU tier up to, all ranks of one engine
    chunk_alignment_bytes: int = 4096
    # what it keeps of one chunk, all ranks of one engine, where that is more than the tokens' bytes; None for
    # those
    bytes_per_chunk: int | None = None
    # after how many tokens of a prefix it keeps the states again; None where it keeps them as the device does
    states_every_tokens: int | None = None
