"""What the secondary tier is made of: its settings, vLLM's jobs, their keys, and memory that vLLM lends."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import Final

from vllm.v1.kv_offload.base import OffloadKey
from vllm.v1.kv_offload.tiering.base import TransferJob

from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.errors import ConnectorError, SettingError

_NOT_OURS: Final = frozenset({"type", "module_path", "backpressure"})
"""Keys of an entry that vLLM reads itself."""
_CONNECTORS_NAMES: Final = re.compile(r"\bdisk_(path|capacity_bytes)\b")
_MOMENT_S: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondarySettings:
    """What one entry says."""

    path: str  # folder of the tier, which one engine has at a time
    capacity_bytes: int  # what its files take, a hard bound; taken at once
    direct_io: bool = True  # pass by the page cache, where the file system can
    write_bytes_per_hour: int = 0  # bound on the disk's wear; 0 for none
    timeout_s: float = 5.0  # A disk that needs longer for one chunk is given up until it answers again
    # any text; chunks that were stored under another are not found. For what vLLM does not tell its tiers:
    # see `tier_fingerprint`.
    namespace: str = ""


def entry_path(entries: object, settings: Mapping[str, object]) -> str:
    """Return the field path of the entry that has these settings."""
    if isinstance(entries, list):
        for place, entry in enumerate(entries):
            if {name: value for name, value in entry.items() if name not in _NOT_OURS} == settings:
                return f"secondary_tiers[{place}]"
    return "secondary_tiers[]"


def parse_settings(settings: Mapping[str, object], entry: str) -> SecondarySettings:
    """Read an entry's settings strictly.

    Raises SettingError: a setting is unknown, missing or bad; the message names it and says what would do.
    """
    known = [field.name for field in fields(SecondarySettings)]
    for name in sorted(settings.keys() - set(known)):
        raise SettingError(f"{entry}.{name}: unknown setting; known are {', '.join(sorted(known))}")
    for setting in fields(SecondarySettings):
        if setting.default is MISSING and setting.name not in settings:
            raise SettingError(f"{entry}.{setting.name}: missing; a disk tier needs a folder and a size")
        if setting.name in settings:
            _check(f"{entry}.{setting.name}", setting.name, settings[setting.name])
    return SecondarySettings(**settings)  # type: ignore[arg-type] # checked above


@contextmanager
def errors_named(entry: str) -> Iterator[None]:
    """Say the disk tier's errors with the names that the settings have in this entry."""
    try:
        yield
    except ConnectorError as error:
        message = _CONNECTORS_NAMES.sub(rf"{entry}.\1", str(error))
        raise type(error)(message if entry in message else f"{entry}: {message}") from error


def _check(place: str, name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = number and isinstance(value, int)
    fits, wanted = {
        "path": (isinstance(value, str) and value.startswith("/"), "the absolute path of a folder"),
        "capacity_bytes": (whole and value > 0, "a whole number, 1 or more"),  # type: ignore[operator]
        "direct_io": (isinstance(value, bool), "true or false"),
        "write_bytes_per_hour": (whole and value >= 0, "a whole number, 0 or more"),  # type: ignore[operator]
        "timeout_s": (number and 0 < value < inf, "seconds, more than 0"),  # type: ignore[operator]
        "namespace": (isinstance(value, str), "a text"),
    }[name]
    if not fits:
        raise SettingError(f"{place}: got {value!r}, must be {wanted}")


@dataclass(slots=True)
class Job:
    """One of vLLM's jobs."""

    number: int  # vLLM's name for it
    began_s: float  # when, by time.monotonic()
    loads: bool  # the direction: True from disk to memory
    # the chunks that are under way, and their slots in memory
    waiting: dict[bytes, int] = field(default_factory=dict)
    done: list[bytes] = field(default_factory=list)  # the chunks that have arrived
    failed: bool = False  # whether some chunk has not


class Jobs:
    """The jobs of one tier. Within a direction, a chunk is in one job at a time.

    `take_back` is called with each slot in memory that the tier uses no more.
    """

    def __init__(self, take_back: Callable[[int], None]) -> None:
        self._take_back = take_back
        self._running = dict[int, Job]()
        self._job_of: dict[bool, dict[bytes, Job]] = {True: {}, False: {}}
        self._ended = list[Job]()
        self.given_up = set[bytes]()
        """Chunks that the disk still has under way, though no job waits for them."""

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, job: Job) -> None:
        """Add a job; one whose chunks are all settled already has ended."""
        self._running[job.number] = job
        self._job_of[job.loads].update(dict.fromkeys(job.waiting, job))
        self._end_if_settled(job)

    def waits_for(self, key: bytes, *, loads: bool) -> bool:
        """Tell whether a chunk is under way."""
        return key in self._job_of[loads]

    def give_up(self, job: Job) -> None:
        """Have a job end without the chunks that are still under way."""
        for key in list(job.waiting):
            self.given_up.add(key)
            self._end_chunk(key, loads=job.loads, arrived=False)

    def apply(self, progress: Progress) -> None:
        """Take the chunks that the disk is done with out of their jobs, which end with their last ones."""
        self.given_up.update(progress.lost)  # until they are in `ended`, too
        for keys, loads, arrived in (
            (progress.loaded, True, True),
            (progress.lost, True, False),
            (progress.stored, False, True),
            (progress.released, False, False),
        ):
            for key in keys:
                self._end_chunk(key, loads=loads, arrived=arrived)
        self.given_up.difference_update(progress.loaded, progress.ended, progress.released)

    def began_before(self, then_s: float) -> list[Job]:
        """Return the jobs that began before a moment and still run."""
        return [job for job in self._running.values() if job.began_s < then_s]

    def take_ended(self) -> list[Job]:
        """Return the jobs that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _end_chunk(self, key: bytes, *, loads: bool, arrived: bool) -> None:
        job = self._job_of[loads].pop(key, None)
        if job is None:
            return
        slot = job.waiting.pop(key)
        if arrived:
            job.done.append(key)
        else:
            job.failed = True
        self._end_if_settled(job)
        self._take_back(slot)

    def _end_if_settled(self, job: Job) -> None:
        if not job.waiting:
            del self._running[job.number]
            self._ended.append(job)


class DiskKeys:
    """vLLM's keys, filled up to the disk's length, and back: those of one engine have one length."""

    def __init__(self) -> None:
        self._key_bytes = KEY_BYTES

    def on_disk(self, key: OffloadKey) -> bytes:
        """Return a key as the disk has it. Raises ValueError: it is longer than any that is known."""
        if len(key) > KEY_BYTES:
            raise ValueError(f"a key of {len(key)} bytes: the disk tier does not know this vLLM's hash")
        return bytes(key).ljust(KEY_BYTES, b"\0")

    def slots(self, job: TransferJob) -> dict[bytes, int]:
        """Return a job's chunks, as the disk has them, and their slots: from a prompt's root to its tail."""
        place = job.req_context.get_offload_key_position
        pairs = sorted(
            zip(job.keys, job.chunk_ids.tolist(), strict=True), key=lambda pair: place(pair[0]) or 0
        )
        self._key_bytes = max((len(key) for key in job.keys), default=self._key_bytes)
        return {bytes(key).ljust(KEY_BYTES, b"\0"): slot for key, slot in pairs}

    def of_vllm(self, keys: Iterable[bytes]) -> list[OffloadKey]:
        """Return keys as vLLM knows them."""
        return [OffloadKey(key[: self._key_bytes]) for key in keys]


class LentMemory:
    """vLLM's memory before the disk tier, of shape (rows, bytes of a row)."""

    def __init__(self, view: memoryview) -> None:
        self.rows = len(view)
        self.row_bytes = view.nbytes // self.rows
        self._memory = view.cast("B")  # a view with two dimensions has no view[row]
        self._lent = dict[int, memoryview]()

    def lend(self, row: int) -> tuple[memoryview, ...]:
        """Return a row's bytes, to be used until `take_back`."""
        start = row * self.row_bytes
        view = self._lent[row] = self._memory[start : start + self.row_bytes]
        return (view,)

    def take_back(self, row: int) -> None:
        """Have nobody touch a row any more: the memoryview that was lent is of no use from now on."""
        view = self._lent.pop(row, None)
        while view is not None:
            try:
                view.release()
            except BufferError:  # a copy or a checksum is under way, which waits for no disk
                time.sleep(_MOMENT_S)
            else:
                return

    def take_all_back(self) -> None:
        """Have nobody touch any row."""
        for row in list(self._lent):
            self.take_back(row)

    def close(self) -> None:
        """Let go of the memory itself."""
        self.take_all_back()
        self._memory.release()
