"""Real engines that compute while their prefix is still being read from disk, and what becomes of that."""

import errno
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.connector.disk_engine import CHUNK_BYTES, DiskEngine, with_faults
from tests.engine.connector.prompts import CACHED, PROMPTS, answers, metric, tokens_of
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, Fail, Fault, FaultyEngine, Keep

from kvtier_connector.core.disk.io.engine import BlockIO

if TYPE_CHECKING:
    from kvtier_connector.vllm.connector import KVTierConnector
    from kvtier_connector.vllm.copies.layerwise_disk_loads import _Load

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

LONG = PROMPTS[4]  # its last tokens fill no chunk: a step has to compute something
CHUNKS = CACHED[4] // 32
FIRST_BYTES = CHUNK_BYTES // 2  # one of the model's two layers


def is_last(io: BlockIO) -> bool:
    return not io.write and io.memory[0].nbytes == CHUNK_BYTES - FIRST_BYTES and io.offset % CHUNK_BYTES > 0


def is_first(io: BlockIO) -> bool:
    return not io.write and io.memory[0].nbytes == FIRST_BYTES and io.offset % CHUNK_BYTES == 0


@pytest.fixture
def faults(disk_engine: DiskEngine, known: Path, tmp_path: Path) -> FaultyEngine:
    """Have the engine find all chunks of PROMPTS on a disk that fails when it is told to."""
    disk_engine.restart(Path(shutil.copytree(known, tmp_path / "disk")))
    return with_faults(disk_engine)


@pytest.fixture
def begun(faults: FaultyEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chunks of every load that is begun while they are read."""
    del faults  # the engine has to be there
    loads = worker_connector()._worker.layerwise_disk_loads
    assert loads is not None
    start, seen = loads.start, list[int]()

    def watched(job_id: int, blocks: object, slots: Sequence[int], tickets: Sequence[int]) -> int:
        seen.append(len(slots))
        return start(job_id, blocks, slots, tickets)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(loads, "start", watched)
    return seen


def worker_connector() -> "KVTierConnector":
    from vllm.distributed.kv_transfer import get_kv_transfer_group  # noqa: PLC0415 - takes seconds

    connector: KVTierConnector = get_kv_transfer_group()
    return connector


def ask(engine: DiskEngine) -> tuple[list[int], int]:
    """Return what LONG is answered, and how many of its tokens were cached."""
    ((tokens, cached),) = answers(engine.llm, [LONG])
    return tokens, cached


@contextmanager
def meanwhile(do: Callable[[], object], faults: FaultyEngine) -> Iterator[None]:
    """Do something in another thread; whatever becomes of that, the engine goes on."""
    failed = list[BaseException]()

    def run() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001 - for the test's own thread
            failed.append(error)
        finally:
            faults.release()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    assert not failed


def test_the_first_layers_compute_while_the_others_are_read(
    disk_engine: DiskEngine,
    faults: FaultyEngine,
    begun: list[int],
    cold: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = threading.Event()
    monkeypatch.setattr(worker_connector(), "save_kv_layer", lambda *_args, **_kwargs: computed.set())
    faults.fault(lambda io: Keep() if is_last(io) else None)

    def release() -> None:
        faults.await_kept(CHUNKS)
        assert computed.wait(SOON_S), "no layer is computed before all has been read"

    with meanwhile(release, faults):
        assert ask(disk_engine) == (cold[4], CACHED[4])
    assert begun == [CHUNKS]
    disk_engine.settle()
    assert disk_engine.connector._manager._index.reservable == disk_engine.connector._manager._index.capacity


@pytest.mark.parametrize("part", [is_first, is_last])
def test_a_chunk_that_cannot_be_read_is_computed(
    disk_engine: DiskEngine,
    faults: FaultyEngine,
    begun: list[int],
    cold: list[list[int]],
    part: Callable[[BlockIO], bool],
) -> None:
    nth = CHUNKS // 2
    left = [None] * nth + [Fail(errno.EIO)]

    def choose(io: BlockIO) -> Fault | None:
        return left.pop(0) if left and part(io) else None

    faults.fault(choose)
    failed = metric(disk_engine.llm, "vllm:kvtier_disk_failed_chunks")
    assert ask(disk_engine) == (cold[4], 0)
    assert not left
    assert begun == [CHUNKS]
    assert metric(disk_engine.llm, "vllm:kvtier_disk_failed_chunks") == failed + 1
    disk_engine.settle()
    assert disk_engine.connector._manager._index.reservable == disk_engine.connector._manager._index.capacity
    assert disk_engine.ask() == (cold, CACHED)


@pytest.mark.parametrize("where", list(product([0, CHUNKS - 1], [0, CHUNK_BYTES - 1])))
def test_damage_that_the_worker_finds_is_computed(
    disk_engine: DiskEngine,
    begun: list[int],
    cold: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
    where: tuple[int, int],
) -> None:
    nth, place = where
    partial_reads = disk_engine.disk._disk._loop.partial_reads
    monkeypatch.setattr(partial_reads, "patience_s", SOON_S)  # nobody else looks before it
    loads = worker_connector()._worker.layerwise_disk_loads
    assert loads is not None
    check, damaged = loads._check, list[int]()

    def damage(load: "_Load") -> None:
        memory = loads._slot.from_address(loads._region_address + int(load.slots[nth]) * loads._slot_bytes)
        memory[place] = bytes([memory[place][0] ^ 1])
        damaged.append(nth)
        check(load)

    monkeypatch.setattr(loads, "_check", damage)
    corrupt = metric(disk_engine.llm, "vllm:kvtier_disk_corrupt_chunks")
    assert ask(disk_engine) == (cold[4], 0)
    assert damaged == [nth]
    assert begun == [CHUNKS]
    disk_engine.settle()
    assert metric(disk_engine.llm, "vllm:kvtier_disk_corrupt_chunks") == corrupt + 1
    assert disk_engine.connector._manager._index.reservable == disk_engine.connector._manager._index.capacity
    monkeypatch.undo()
    assert disk_engine.ask() == (cold, CACHED)


@pytest.mark.parametrize("part", [is_first, is_last])
def test_a_disk_that_hangs_under_a_step_is_let_go_of(
    disk_engine: DiskEngine,
    faults: FaultyEngine,
    begun: list[int],
    cold: list[list[int]],
    part: Callable[[BlockIO], bool],
) -> None:
    faults.fault(lambda io: Keep() if part(io) else None)

    def hang() -> None:
        faults.await_kept(CHUNKS)
        faults.become_late()
        served = disk_engine.disk._disk._loop._served
        while served.store is not None:
            threading.Event().wait(0.001)

    with meanwhile(hang, faults):
        assert ask(disk_engine) == (cold[4], 0)
    assert begun == [CHUNKS]
    assert disk_engine.disk.is_down or metric(disk_engine.llm, "vllm:kvtier_disk_degraded") == 0
    while disk_engine.disk.is_down:
        assert disk_engine.disk._disk.wait(SOON_S), "it does not come back"
        disk_engine.connector._manager.behind.poll()
    assert disk_engine.ask() == (cold, CACHED)


def test_a_step_does_not_wait_for_a_slow_disk(
    disk_engine: DiskEngine, faults: FaultyEngine, begun: list[int], cold: list[list[int]]
) -> None:
    disk_engine.disk.break_even.read.add(1 << 30, 10_000)
    assert ask(disk_engine) == (cold[4], CACHED[4])
    assert begun == []
    assert faults.begun[False] == 2 * CHUNKS  # in parts all the same: it may have become faster


def test_requests_that_are_not_alone_wait_until_all_has_been_read(
    disk_engine: DiskEngine, faults: FaultyEngine, begun: list[int], cold: list[list[int]]
) -> None:
    found = answers(disk_engine.llm, [LONG, PROMPTS[3]])
    assert tokens_of(found) == [cold[4], cold[3]]
    assert [cached for _, cached in found] == [CACHED[4], CACHED[3]]
    assert begun == []
    chunks = CHUNKS + CACHED[3] // 32
    assert faults.begun_bytes[False] == chunks * disk_engine.disk.block_bytes
    assert faults.begun[False] < chunks  # what is read in parts takes transfers of its own
