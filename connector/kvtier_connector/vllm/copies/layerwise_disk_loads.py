"""Loads of blocks that are still being read from disk, by the step that computes with them."""

import ctypes
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeVar

from typing_extensions import Buffer
from vllm.v1.kv_offload.base import GPULoadStoreSpec

from kvtier_connector.core.copies.arrivals import DOUBTED, WHOLE, Arrivals, Tickets
from kvtier_connector.core.copies.copyplan import Page, Run, plan_copies
from kvtier_connector.core.copies.layer_parts import LayerPart
from kvtier_connector.core.disk.files.fingerprint import seeded_checksum
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import DiskError
from kvtier_connector.vllm.copies.copier import CopyResult, copy_run

T = TypeVar("T")
_REGION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_MARGIN_S: Final = 5.0
"""The disk's own thread says when a block has taken too long; only if that hangs, too, nothing is said."""
_COPIED_AT_ONCE_BYTES: Final = 32 << 20
"""Of slots, of which a part is copied: threads that take less wait for the interpreter's lock."""


def on_computing_threads(do: Callable[[T], None], items: Iterable[T]) -> None:
    """Have all of the threads with which a model computes work items off, and return when all are done.

    vLLM binds them to a core each, and they spin for some milliseconds after each part of a step: a thread of
    our own would get half of a core at best. PyTorch and vLLM start them through OpenMP, and `GOMP_parallel`
    is what compilers make of `#pragma omp parallel` (GCC's libgomp, parallel.c; LLVM's and Intel's have it,
    too). Without OpenMP, the caller does the work alone.

    Only what leaves the interpreter's lock goes on at the same time, and who waits for the lock is late: the
    longer and the fewer the calls, the better. Raises what the first call that failed has raised; some items
    may not have been done then.
    """
    left, failed = deque(items), list[Exception]()

    def work(_: int | None) -> None:
        while not failed:
            try:
                item = left.popleft()
            except IndexError:
                return
            try:
                do(item)
            except Exception as error:  # noqa: BLE001 - ctypes would drop it; it is the caller's
                failed.append(error)

    parallel = _parallel()
    if parallel is None:
        work(None)
    else:
        parallel(_REGION(work), None, 0, 0)
    if failed:
        raise failed[0]


@cache
def _parallel(library: str | None = None) -> Callable[[object, None, int, int], None] | None:
    """Find the OpenMP that all of the process uses, which vLLM preloads for that; None without.

    It takes what each thread calls, what with, how many threads (0: as many as there are), and flags.
    """
    try:
        function = ctypes.CDLL(library).GOMP_parallel
    except AttributeError:
        return None
    function.restype, function.argtypes = None, (_REGION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    return function


@dataclass(slots=True)
class _Load:
    """A load that the step has begun."""

    # its runs of whole blocks: the device's by their numbers, the region's by their addresses
    blocks: tuple[Run, ...]
    slots: Slots  # the region's
    tickets: Tickets  # tickets of the reads into them
    begun_s: float  # when, by time.monotonic()
    parts: int = 0  # how many have been copied
    error: Exception | None = None  # why it failed, or None


class LayerwiseDiskLoads:
    """Copies what comes to the device, each part of the layers when a layer needs it, and checks the blocks.

    Nothing goes on beside the step: threads that copy take the cores from those that compute, which then wait
    for each other.
    """

    def __init__(self, parts: Sequence[LayerPart], arrivals: Arrivals, timeout_s: float) -> None:
        self._parts = parts
        self._last_layers = [part.last_layer for part in parts]
        layout = parts[0].layout
        self._region_address = layout.region_address
        self._slot_bytes = layout.slot_bytes
        self._slot = ctypes.c_char * layout.slot_bytes
        self._whole = replace(layout, groups=((Page(0, 1, 0, layout.slot_bytes),),))
        self._arrivals = arrivals
        self._timeout_s = timeout_s + _MARGIN_S
        self._loads = dict[int, _Load]()

    def start(self, job_id: int, blocks: GPULoadStoreSpec, slots: Slots, tickets: Tickets) -> int:
        """Begin a load; returns its bytes."""
        plan = plan_copies(self._whole, blocks.block_ids, slots, blocks.group_sizes, blocks.block_indices)
        self._loads[job_id] = _Load(plan.runs, slots, tickets, time.monotonic())
        return len(slots) * self._parts[-1].end_bytes

    def wait_for_layer(self, job_id: int, layer: int) -> None:
        """Return when a layer, counted from 0, can be computed with, or the load has failed."""
        if job_id in self._loads:
            self._go_on(self._loads[job_id], bisect_left(self._last_layers, layer) + 1)

    def is_last(self, layer: int) -> bool:
        """Tell whether a load has ended when this layer can be computed with."""
        return layer > self._last_layers[-2]

    def finish(self, job_ids: Collection[int]) -> None:
        """Return when these loads have ended."""
        for job_id in self._loads.keys() & set(job_ids):
            self._go_on(self._loads[job_id], len(self._parts))

    def take_finished(self) -> list[CopyResult]:
        """Return the loads that ended since the last call."""
        ended = [key for key, load in self._loads.items() if load.error or load.parts == len(self._parts)]
        loads = [(job_id, self._loads.pop(job_id)) for job_id in ended]
        return [CopyResult(job_id, time.monotonic() - load.begun_s, load.error) for job_id, load in loads]

    def _go_on(self, load: _Load, parts: int) -> None:
        try:
            while load.error is None and load.parts < parts:
                self._arrivals.wait(load.slots, load.tickets, load.parts + 1, self._timeout_s)
                if load.parts + 1 == len(self._parts):
                    self._check(load)
                self._copy(load, self._parts[load.parts])
                load.parts += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine must live and the blocks be a miss
            load.error = error

    def _copy(self, load: _Load, part: LayerPart) -> None:
        pieces = (
            copies
            for run in load.blocks
            for piece in run.pieces(_COPIED_AT_ONCE_BYTES)
            for copies in _of_layers(piece, part)
        )
        on_computing_threads(lambda run: copy_run(run, to_device=True), pieces)

    def _check(self, load: _Load) -> None:
        """Check what nobody has checked yet, and tell.

        Raises DiskError: a block is wrong. The disk's thread has seen that, too: until then it would be found
        again.
        """
        reads = zip(load.slots.tolist(), load.tickets.tolist(), strict=True)
        unchecked = {
            slot: ticket for slot, ticket in reads if ticket and self._arrivals.how_far(slot, ticket) != WHOLE
        }
        expected = ((slot, *self._arrivals.seed_and_checksum(slot), self._memory(slot)) for slot in unchecked)
        doubted = set[int]()

        def check(block: tuple[int, int, int, Buffer]) -> None:
            slot, seed, checksum, memory = block
            if seeded_checksum(seed, memory) != checksum:
                doubted.add(slot)

        on_computing_threads(check, expected)
        for slot, ticket in unchecked.items():
            self._arrivals.tell(slot, ticket, DOUBTED if slot in doubted else WHOLE)
        if doubted:
            self._arrivals.wait(load.slots, load.tickets, WHOLE, self._timeout_s)
            raise DiskError("a block's checksum is wrong")

    def _memory(self, slot: int) -> Buffer:
        return self._slot.from_address(self._region_address + slot * self._slot_bytes)


def _of_layers(blocks: Run, part: LayerPart) -> Iterator[Run]:
    """Yield the copies of some layers of a run of whole blocks."""
    (pages,) = part.layout.groups
    for page in pages:
        yield Run(
            page.device_address + blocks.device * page.device_stride_bytes,
            blocks.device_step * page.device_stride_bytes,
            blocks.region + page.slot_offset_bytes,
            blocks.region_step,
            page.size_bytes,
            blocks.count,
        )
