"""Tiers as planned, and what a backend needs of the engine and its pod to serve them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """One tier of one engine pod.

    Attributes:
        capacity_bytes: All ranks together, as asked for.
        bytes_per_rank: What each rank gets, rounded as the backend and the pages need it.
        tokens: Tokens that fit, all engines of the pod together.
        states_tokens: Tokens in whose place it keeps the windows and states of its prefixes.
        hugepages: Pages under the tier; None where there are none.
        observed_tokens: Tokens that fit, as a running engine says; None where none was asked.
    """

    capacity_bytes: int
    bytes_per_rank: int
    tokens: int
    hugepages: HugepagesPlan | None = None
    observed_tokens: int | None = None
    states_tokens: int = 0

    @property
    def held_tokens(self) -> int:
        """What an engine says that it holds: it does not tell tokens from windows and states."""
        return self.tokens + self.states_tokens


@dataclass(frozen=True, slots=True)
class TiersPlan:
    """All tiers of one engine pod.

    Attributes:
        by_tier: Those that there are; the device's own cache only where its size is known.
        observed_block_tokens: Tokens of one block, as a running engine says; None where none was asked.
    """

    by_tier: Mapping[Tier, TierPlan]
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


@dataclass(frozen=True, slots=True)
class TierChunks:
    """What one tier of one engine holds, of a backend whose index shares the capacity with the chunks.

    Attributes:
        chunks: How many.
        how: The formula with its numbers filled in.
        memory_bytes: What their index takes of memory at most.
        read_s: Seconds that reading the index takes at start.
    """

    chunks: int
    how: str
    memory_bytes: int
    read_s: int


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """What one backend needs, to be merged into the engine and the budget.

    Attributes:
        args: vLLM arguments.
        bytes_per_rank: Each tier beyond the device as this backend takes it, each rank; 0 of one without.
        tokens_per_chunk: Tokens it stores, finds and evicts together.
        env: Environment of the engine.
        files: Files of the engine.
        mounts: Volumes of the engine.
        sidecars: Processes beside it.
        scratch_dirs: Folders that must be emptied before each start of the engine's container.
        shm_bytes: What it keeps in /dev/shm.
        tier_memory_bytes: The CPU tier outside /dev/shm and outside explicit huge pages.
        page_locked: Whether it asks the driver to page-lock the tier for DMA, and says whether it did.
        per_rank_overhead_bytes: Its own memory beside the tier, each rank.
        chunks: What a tier holds in each engine, where that is not as many chunks as go into its bytes.
        hugepages: Explicit huge pages it takes.
        notes: What a reader of the report should know of this backend's behaviour.
        chunk_alignment_bytes: What it rounds each chunk of the CPU tier up to, all ranks of one engine.
        bytes_per_chunk: What it keeps of one chunk, all ranks of one engine, where that is more than the
            tokens' bytes; None for those.
        states_every_tokens: After how many tokens of a prefix it keeps the states again; None where it keeps
            them as the device does.
    """

    args: tuple[str, ...]
    bytes_per_rank: Mapping[Tier, int]
    tokens_per_chunk: int
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()
    mounts: tuple[Mount, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    scratch_dirs: tuple[str, ...] = ()
    shm_bytes: int = 0
    tier_memory_bytes: int = 0
    page_locked: bool = False
    per_rank_overhead_bytes: int = 0
    chunks: Mapping[Tier, TierChunks] = field(default_factory=dict)
    hugepages: HugepagesPlan | None = None
    notes: tuple[str, ...] = ()
    chunk_alignment_bytes: int = 4096
    bytes_per_chunk: int | None = None
    states_every_tokens: int | None = None
