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
    """What to know of a backend before choosing it."""

    reason: str  # CamelCase, as in a condition
    message: str  # what is so, and what its reader can do
    by_itself: str = "runs it as it is written"  # what becomes of it otherwise, after "otherwise kvtier"


@dataclass(frozen=True, slots=True)
class NeedsGPU:
    """Of a backend that does not work on device cpu."""

    why: str  # in a clause of its own
    starts: bool  # whether vLLM starts there all the same


@dataclass(frozen=True, slots=True)
class NoHybridManager:
    """Of a backend without vLLM's hybrid cache manager: windows are kept in full, states not at all."""

    for_states: str  # the backends to take for layers with states
    for_windows: str  # what others keep of a window, as a clause that begins with the backend


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTraits:
    """The CPU tier of a backend."""

    place: TierPlace  # where it is
    page_sizes: frozenset[HugepageSize] = frozenset()  # explicit huge pages it can be on
    falls_back: bool = False  # whether it takes what huge pages are free, and ordinary pages for the rest
    pins_in_one_call: bool = False  # whether the driver is given all that a process pins at once


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTraits:
    """The disk tier of a backend."""

    folder: Folder  # what becomes of its folder
    # what it is not; None where it keeps to its capacity and is warm after a restart
    caveat: Caveat | None = None
    direct_io: bool = True  # whether it can bypass the page cache
    keeps_adapters: bool = True  # whether it writes what is computed with LoRA adapters
    # one in so many tokens of the CPU tier may wait to be written; None where none does
    waiting_share: int | None = None


class RemoteUse(StrEnum):
    """What a resource may ask of a remote tier beside its size: the field, and which part of it."""

    CLUSTER = "url: several servers"
    PREFIX = "url: a prefix"
    ENDPOINT_BY_NUMBER = "url: an IP address"
    CREDENTIALS = "credentials"
    CA = "tls"
    MAC_KEY = "macKey"
    WRITE_BOUND = "writeBytesPerSecond"
    TTL = "ttlSeconds"
    CONNECTIONS = "connections"
    SHARE = "shareAs"
    MANAGED = "managed"

    @property
    def field(self) -> str:
        """Its name in `spec.tiers.remote`."""
        return self.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTraits:
    """The remote tier of a backend."""

    schemes: frozenset[str] = frozenset()  # of the URLs that it can use; none where it has no such tier
    own_client: bool = False  # whether it is kvtier's: the doctor signs in by it, and what it takes is known
    keeps_adapters: bool = True  # whether it writes what is computed with LoRA adapters
    # what it cannot, with the end of a sentence that begins with "backend X": why, and what to do
    cannot: Mapping[RemoteUse, str] = field(default_factory=dict)
    caveat: Caveat | None = None  # what it is not; None where it keeps to what the resource asks


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTraits:
    """What is true of a backend whatever a resource says."""

    title: str  # what moves the blocks, as the subject of a sentence
    project: str  # whose it is
    images: Mapping[Device, ImageName]  # the image of engines that name none, for each device
    cpu: CpuTraits  # its CPU tier
    disk: DiskTraits  # its disk tier
    remote: RemoteTraits = RemoteTraits()  # its remote tier
    in_payload: bool = False  # whether the pod brings it, and its image need not have it
    refuses_other_minors: bool = False  # whether it ends where vLLM is of a minor that kvtier does not know
    offloading: bool = False  # whether it is vLLM's offloading connector, or made of it
    # whether it asks vLLM on a GPU to lay the layers of a block beside each other
    blocks_outermost: bool = False
    # whether it starts only where a chunk, and with states a step, is whole blocks
    whole_blocks: bool = False
    # set where vLLM turns its hybrid cache manager off for it
    no_hybrid_manager: NoHybridManager | None = None
    needs_gpu: NeedsGPU | None = None  # set where it does not work on device cpu
    tells_adapters_apart: bool = True  # whether its keys hold the adapter
    adapters_otherwise: str = ""  # what else keeps adapters apart, as the end of a list of advice
    deprecated: Caveat | None = None  # by whom, and what to take in its place
    bench_side: str | None = None  # what `kvtier bench connector` calls it; None where it is not compared
    package: str | None = None  # Python package that it needs beside vLLM
    fixed_port: bool = False  # whether its server has one port, so that a machine runs one replica
    env_prefix: str | None = None  # how the environment variables begin that it reads
    # those of them that kvtier computes, with why nobody else may set them
    reserved_env: Mapping[str, str] = field(default_factory=dict)
