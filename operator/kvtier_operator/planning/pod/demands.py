"""What an engine's pod must find before vLLM starts: plain data that travels from the planner to the doctor.

Imports little, since the doctor runs before every start of an engine.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final, Self

from kvtier_common.formats.json_text import parse_json_object

DEMANDS_VARIABLE: Final = "KVTIER_DEMANDS"
"""Environment variable of the doctor's container that holds the demands as JSON."""
NODE_VARIABLE: Final = "NODE_NAME"
"""The one that holds the name of the pod's node."""


@dataclass(frozen=True, slots=True)
class HugepagesDemand:
    """Explicit huge pages under the CPU tier."""

    page_bytes: int  # size of one page
    pages: int  # how many
    required: bool  # whether the engine must not start without; it falls back otherwise

    @property
    def bytes(self) -> int:
        """Bytes of all pages together."""
        return self.page_bytes * self.pages


@dataclass(frozen=True, slots=True)
class MemlockDemand:
    """Memory that one process locks."""

    bytes: int  # how much; 0 where huge pages hold it, which are never swapped
    required: bool  # whether the engine must not start without; it stays unlocked otherwise


@dataclass(frozen=True, slots=True)
class VolumeDemand:
    """A volume of the disk tier."""

    path: str  # where the container sees it
    bytes: int  # what the tier keeps there at most
    direct_io: bool  # whether the page cache is to be bypassed (O_DIRECT)


@dataclass(frozen=True, slots=True)
class RemoteDemand:
    """The store of the remote tier, as the engine's connector reaches it."""

    managed: bool  # whether it is one that kvtier makes
    url: str  # without user and password
    share: str  # name under which blocks are shared
    capacity_bytes: int  # what it is to hold
    credentials_path: str  # folder with `password` and perhaps `username`; empty for none
    ca_path: str  # file with the certificate of who signed the store's; empty for the image's


@dataclass(frozen=True, slots=True)
class Demands:
    """Everything that is checked."""

    memory_bytes: int  # ordinary memory of the engine's container: its limit
    shm_bytes: int  # size of /dev/shm
    hugepages: HugepagesDemand | None = None  # explicit huge pages; None where none are wanted
    memlock: MemlockDemand | None = None  # locked memory; None where the engine starts without
    volumes: tuple[VolumeDemand, ...] = ()  # volumes of the disk tier
    ordinary_tier_bytes: int = 0  # what of the CPU tier is on ordinary pages
    remote: RemoteDemand | None = None  # the remote tier's store; None where the doctor looks at none

    def to_json(self) -> str:
        """The demands as one line; the same text for the same demands."""
        plain = asdict(self)
        if self.remote is None:  # most resources have none, and a new text restarts engines
            del plain["remote"]
        return json.dumps(plain, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The demands that `to_json` wrote.

        Raises:
            ValueError: The text is not what it writes, such as another version's.
        """
        try:
            fields = parse_json_object(text)
            hugepages, memlock = fields["hugepages"], fields["memlock"]
            remote = fields.get("remote")
            return cls(
                memory_bytes=fields["memory_bytes"],
                shm_bytes=fields["shm_bytes"],
                hugepages=HugepagesDemand(**hugepages) if hugepages else None,
                memlock=MemlockDemand(**memlock) if memlock else None,
                volumes=tuple(VolumeDemand(**volume) for volume in fields["volumes"]),
                ordinary_tier_bytes=fields["ordinary_tier_bytes"],
                remote=RemoteDemand(**remote) if remote else None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the demands of an engine: {error}") from error


@dataclass(frozen=True, slots=True)
class DoctorPlan:
    """What looks at the pod before vLLM starts."""

    image: str  # kvtier's own image
    demands: Demands  # what the pod must find
