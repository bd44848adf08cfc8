"""The Plan: everything that must agree, computed once from one KVCacheTier."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.pod.demands import Demands
from kvtier_operator.planning.pod.ending import Ending
from kvtier_operator.planning.pod.images import ImageName


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the sizing report with how it came about.

    Attributes:
        name: What it is, such as `KV bytes per token`.
        value: The number, in the unit that the name says.
        how: The formula with its numbers filled in, such as `2 x 64 layers x 8 heads x 128 x 2 B`.
    """

    name: str
    value: int
    how: str


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
class Tiers:
    """All tiers of one engine pod.

    Attributes:
        gpu: The device's own cache; None where its size is not known.
        cpu: CPU memory.
        disk: Local disk; None where there is none.
        observed_block_tokens: Tokens of one block, as a running engine says; None where none was asked.
    """

    gpu: TierPlan | None
    cpu: TierPlan
    disk: TierPlan | None
    observed_block_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file the engine's container needs.

    Attributes:
        path: Absolute path in the container.
        content: The whole text.
    """

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume and where the container sees it.

    Attributes:
        name: Volume name, unique in the pod.
        mount_path: Absolute path in the container.
        source: The volume's source as it stands in a pod, such as `{"emptyDir": {}}`.
        payload_bytes: What it is to hold, without what a filesystem needs beside it; 0 where not known.
        read_only: Whether the engine only reads it.
    """

    name: str
    mount_path: str
    source: Mapping[str, Any]
    payload_bytes: int = 0
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A process beside the engine, such as LMCache's server.

    Attributes:
        name: Container name.
        image: None for the engine's own image.
        command: Program and arguments.
        env: Environment.
        ports: Named ports.
        memory_bytes: Its share of the pod's memory, tier included.
    """

    name: str
    image: str | None
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DiskChunks:
    """What one engine's disk tier holds, of a backend whose index shares the capacity with the chunks.

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
        cpu_bytes_per_rank: The CPU tier as this backend takes it, each rank.
        tokens_per_chunk: Tokens it stores, finds and evicts together.
        env: Environment of the engine.
        files: Files of the engine.
        mounts: Volumes of the engine.
        sidecars: Processes beside it.
        image: Engine image the backend needs when the resource names none; None for vLLM's own.
        shm_bytes: What it keeps in /dev/shm.
        tier_memory_bytes: The CPU tier outside /dev/shm and outside explicit huge pages.
        page_locked: Whether it asks the driver to page-lock the tier for DMA, and says whether it did.
        per_rank_overhead_bytes: Its own memory beside the tier, each rank.
        disk_bytes_per_rank: The disk tier as this backend takes it, each rank; 0 without one.
        disk_chunks: What that holds in each engine; None for as many chunks as it has room for.
        hugepages: Explicit huge pages it takes.
        notes: What a reader of the report should know of this backend's behaviour.
        chunk_alignment_bytes: What it rounds each chunk of the CPU tier up to, all ranks of one engine.
        bytes_per_chunk: What it keeps of one chunk, all ranks of one engine, where that is more than the
            tokens' bytes; None for those.
        states_every_tokens: After how many tokens of a prefix it keeps the states again; None where it keeps
            them as the device does.
    """

    args: tuple[str, ...]
    cpu_bytes_per_rank: int
    tokens_per_chunk: int
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()
    mounts: tuple[Mount, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    image: ImageName | None = None
    shm_bytes: int = 0
    tier_memory_bytes: int = 0
    page_locked: bool = False
    per_rank_overhead_bytes: int = 0
    disk_bytes_per_rank: int = 0
    disk_chunks: DiskChunks | None = None
    hugepages: HugepagesPlan | None = None
    notes: tuple[str, ...] = ()
    chunk_alignment_bytes: int = 4096
    bytes_per_chunk: int | None = None
    states_every_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line of the pod's memory or disk: what takes `bytes`, and why that many."""

    what: str
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The pod's resources.

    Attributes:
        memory: The lines whose sum is the memory limit. Explicit huge pages are not among them: the
            kernel accounts them apart.
        storage: The lines whose sum is the request for the node's own disk; empty where there is none.
        requests: The engine pod's requests, as quantities.
        limits: Its limits.
        shm_bytes: Size of /dev/shm.
        startup_s: Seconds until the engine must be ready: loading weights, taking the tier's memory, reading
            the disk's index.
        fetch_s: Seconds before that, until the weights are there: by a fetcher, or in an image.
    """

    memory: tuple[BudgetLine, ...]
    storage: tuple[BudgetLine, ...]
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    shm_bytes: int
    startup_s: int
    fetch_s: int = 0


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The engine as a container or a process.

    Attributes:
        image: Container image.
        args: All vLLM arguments after the program, the model's name included.
        env: Plain environment variables.
        env_from_resource: Variables passed through from the resource (with valueFrom), as in a pod.
        files: Files it needs.
        mounts: Volumes it needs.
        sidecars: Processes beside it.
        port: Port of the OpenAI-compatible server.
    """

    image: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    env_from_resource: tuple[Mapping[str, Any], ...]
    files: tuple[ConfigFile, ...]
    mounts: tuple[Mount, ...]
    sidecars: tuple[Sidecar, ...]
    port: int


@dataclass(frozen=True, slots=True)
class DoctorPlan:
    """What looks at the pod before vLLM starts.

    Attributes:
        image: kvtier's own image.
        demands: What the pod must find.
    """

    image: str
    demands: Demands


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


class Outcome(StrEnum):
    """What a check says."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARN = "Warn"
    REJECT = "Reject"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Verdict of one check.

    Attributes:
        name: The check.
        outcome: Pass, Warn or Reject.
        reason: CamelCase, as in a condition.
        message: One line with the numbers, naming the field and what to do.
        field: Path of the field it is about.
    """

    name: str
    outcome: Outcome
    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One KVCacheTier, worked out. Rendered to YAML, applied to a cluster or run as processes.

    `weights` is the volume that a pod keeps the model in; None where it makes none. `most_tokens` is the most
    that a running engine may say of its tiers.
    """

    resource: KVCacheTier
    geometry: Geometry
    tiers: Tiers
    most_tokens: EngineTokens
    budget: Budget
    ending: Ending
    engine: EnginePlan
    weights: Mount | None
    doctor: DoctorPlan
    router: RouterPlan
    pull_secrets: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]

    @property
    def rejected(self) -> bool:
        """Whether any check refuses this plan."""
        return any(check.outcome is Outcome.REJECT for check in self.checks)
