"""What is true of a backend whatever a resource says: checks, budget, objects and local runs ask these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers.cpu import HugepageSize
from kvtier_operator.planning.images import ImageName


class TierPlace(StrEnum):
    """Where the memory of the CPU tier is."""

    ENGINE = "Engine"
    """In the engine's processes."""
    SHM = "Shm"
    """In /dev/shm, which all ranks map."""
    SERVER = "Server"
    """In a process beside the engine, for all engines of the pod."""


class Folder(StrEnum):
    """What a backend does with the folder of its disk tier."""

    OWN = "Own"
    """One engine locks it and reads at start what an earlier one wrote."""
    EMPTIED = "Emptied"
    """Its content is of no use after a restart, and removed then."""
    SHARED = "Shared"
    """Engines share it, and read what others wrote."""


@dataclass(frozen=True, slots=True)
class Caveat:
    """What to know of a backend before choosing it.

    Attributes:
        reason: CamelCase, as in a condition.
        message: What is so, and what its reader can do.
        by_itself: What becomes of it otherwise, after "by itself kvtier".
    """

    reason: str
    message: str
    by_itself: str = "runs it as it is written"


@dataclass(frozen=True, slots=True)
class NeedsGPU:
    """Of a backend that does not work on device cpu.

    Attributes:
        why: In a clause of its own.
        starts: Whether vLLM starts there all the same.
    """

    why: str
    starts: bool


@dataclass(frozen=True, slots=True)
class NoHybridManager:
    """Of a backend without vLLM's hybrid cache manager: windows are kept in full, states not at all.

    Attributes:
        for_states: The backends to take for layers with states.
        for_windows: What others keep of a window, as a clause that begins with the backend.
    """

    for_states: str
    for_windows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTraits:
    """The CPU tier of a backend.

    Attributes:
        place: Where it is.
        page_sizes: Explicit huge pages it can be on.
        falls_back: Whether it takes what huge pages are free, and ordinary pages for the rest.
        pins_in_one_call: Whether the driver is given all that a process pins at once.
    """

    place: TierPlace
    page_sizes: frozenset[HugepageSize] = frozenset()
    falls_back: bool = False
    pins_in_one_call: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTraits:
    """The disk tier of a backend.

    Attributes:
        folder: What becomes of its folder.
        caveat: What it is not; None where it keeps to its capacity and is warm after a restart.
        direct_io: Whether it can bypass the page cache.
        waiting_share: One in so many tokens of the CPU tier may wait to be written; None where none does.
    """

    folder: Folder
    caveat: Caveat | None = None
    direct_io: bool = True
    waiting_share: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTraits:
    """What is true of a backend whatever a resource says.

    Attributes:
        title: What moves the blocks, as the subject of a sentence.
        project: Whose it is.
        images: The image of engines that name none, for each device.
        cpu: Its CPU tier.
        disk: Its disk tier.
        in_published_images: Whether images of vLLM have it.
        refuses_other_minors: Whether it ends where vLLM is of a minor that kvtier does not know.
        offloading: Whether it is vLLM's offloading connector, or made of it.
        blocks_outermost: Whether it asks vLLM on a GPU to lay the layers of a block beside each other.
        whole_blocks: Whether it starts only where a chunk, and with states a step, is whole blocks.
        no_hybrid_manager: Set where vLLM turns its hybrid cache manager off for it.
        needs_gpu: Set where it does not work on device cpu.
        tells_adapters_apart: Whether its keys hold the adapter.
        adapters_otherwise: What else keeps adapters apart, as the end of a list of advice.
        deprecated: By whom, and what to take in its place.
        bench_side: What `kvtier bench connector` calls it; None where it is not compared.
        package: Python package that it needs beside vLLM.
        fixed_port: Whether its server has one port, so that a machine runs one replica.
        env_prefix: How the environment variables begin that it reads.
        reserved_env: Those of them that kvtier computes, with why nobody else may set them.
    """

    title: str
    project: str
    images: Mapping[Device, ImageName]
    cpu: CpuTraits
    disk: DiskTraits
    in_published_images: bool = True
    refuses_other_minors: bool = False
    offloading: bool = False
    blocks_outermost: bool = False
    whole_blocks: bool = False
    no_hybrid_manager: NoHybridManager | None = None
    needs_gpu: NeedsGPU | None = None
    tells_adapters_apart: bool = True
    adapters_otherwise: str = ""
    deprecated: Caveat | None = None
    bench_side: str | None = None
    package: str | None = None
    fixed_port: bool = False
    env_prefix: str | None = None
    reserved_env: Mapping[str, str] = field(default_factory=dict)
