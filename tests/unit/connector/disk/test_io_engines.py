"""Both engines keep the same promises, with real files and with a device that really hangs (a pipe)."""

import errno
import gc
import mmap
import os
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_connector.core.disk.io.engine import BlockIO, Ended, EngineUnavailableError, IOEngine
from kvtier_connector.core.disk.io.threads import ThreadEngine
from kvtier_connector.core.disk.io.uring import UringEngine

PAGE = 4096
SOON_S = 60.0
NAMES = [UringEngine.name, ThreadEngine.name]


@dataclass
class Case:
    """One kind of engine, and how to know that the kernel has what it was given."""

    name: str
    open: Callable[[int], IOEngine]
    begun: threading.Semaphore

    def await_begun(self, transfers: int) -> None:
        if self.name == ThreadEngine.name:  # the ring hands over within `submit`
            for _ in range(transfers):
                assert self.begun.acquire(timeout=SOON_S)


def case_of(name: str, stack: ExitStack) -> Case:
    begun = threading.Semaphore(0)

    def read(descriptor: int, parts: object, offset: int) -> int:
        begun.release()
        try:
            return os.preadv(descriptor, parts, offset)  # type: ignore[arg-type]
        except OSError as error:
            if error.errno != errno.ESPIPE:
                raise
            return os.readv(descriptor, parts)  # type: ignore[arg-type]

    def open_engine(depth: int) -> IOEngine:
        try:
            engine = UringEngine(depth) if name == UringEngine.name else ThreadEngine(depth, read=read)
        except EngineUnavailableError as error:
            pytest.skip(str(error))
        return stack.enter_context(closing(engine))

    return Case(name, open_engine, begun)


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    with ExitStack() as stack:
        yield case_of(request.param, stack)


def reading(tag: int, descriptor: int, offset: int, parts: tuple[memoryview, ...]) -> BlockIO:
    return BlockIO(tag, write=False, descriptor=descriptor, offset=offset, parts=parts)


def writing(tag: int, descriptor: int, offset: int, parts: tuple[memoryview, ...]) -> BlockIO:
    return BlockIO(tag, write=True, descriptor=descriptor, offset=offset, parts=parts)


def aligned(size_bytes: int) -> memoryview:
    return memoryview(mmap.mmap(-1, size_bytes))


def filled(size_bytes: int, seed: int) -> memoryview:
    memory = aligned(size_bytes)
    memory[:] = random.Random(seed).randbytes(size_bytes)  # noqa: S311 - no secret
    return memory


def in_parts(memory: memoryview, *sizes: int) -> tuple[memoryview, ...]:
    parts, start = [], 0
    for size in sizes:
        parts.append(memory[start : start + size])
        start += size
    return *parts, memory[start:]


def finish(engine: IOEngine, count: int) -> list[Ended]:
    found: list[Ended] = []
    while len(found) < count:
        ended = engine.ended(SOON_S)
        assert ended, f"{len(found)} of {count} have ended"
        found += ended
    assert len(found) == count
    return found


def outcome(engine: IOEngine, io: BlockIO) -> OSError | None:
    engine.submit([io])
    (ended,) = finish(engine, 1)
    assert ended.io is io
    return ended.error


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(3)]
    yield made
    for pipe in made:
        for descriptor in pipe:
            os.close(descriptor)


@pytest.mark.parametrize("flags", [os.O_DIRECT, 0], ids=["direct", "cached"])
def test_blocks_in_parts_come_back_as_they_were(case: Case, tmp_path: Path, flags: int) -> None:
    try:
        descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT | flags)
    except OSError as error:
        pytest.skip(f"O_DIRECT: {error}")
    size, blocks, engine = 4 * PAGE, 50, case.open(8)
    order = random.Random(0)  # noqa: S311 - no secret
    written = [filled(size, seed) for seed in range(blocks)]
    read = [aligned(size) for _ in range(blocks)]
    for memory, write in ((written, True), (read, False)):
        ios = [
            BlockIO(tag, write, descriptor, tag * size, in_parts(block, PAGE, 2 * PAGE))
            for tag, block in enumerate(memory)
        ]
        order.shuffle(ios)
        engine.submit(ios[:30])
        engine.submit(ios[30:])
        assert engine.in_flight == blocks
        ended = finish(engine, blocks)
        assert {result.error for result in ended} == {None}
        assert sorted(result.io.tag for result in ended) == list(range(blocks))
        assert engine.in_flight == 0
    assert read == written
    os.close(descriptor)


def test_what_waits_is_taken_in_order(case: Case, file: int) -> None:
    engine = case.open(1)
    engine.submit([writing(tag, file, 0, (filled(PAGE, tag),)) for tag in range(20)])
    assert [ended.io.tag for ended in finish(engine, 20)] == list(range(20))
    assert os.pread(file, PAGE, 0) == filled(PAGE, 19)


def test_nothing_ends_while_nothing_is_asked(case: Case) -> None:
    engine = case.open(2)
    assert engine.ended(0.0) == []
    assert engine.ended(0.001) == []
    assert (engine.in_flight, engine.overdue(-1.0), engine.withdraw()) == (0, [], [])


def test_a_device_that_hangs_is_seen_and_does_not_lose_what_it_ends_late(
    case: Case, file: int, pipes: list[tuple[int, int]]
) -> None:
    engine = case.open(2)
    hanging = [reading(tag, pipes[tag][0], 0, (aligned(PAGE),)) for tag in range(2)]
    behind = [writing(tag, file, tag * PAGE, (filled(PAGE, tag),)) for tag in range(2, 5)]
    engine.submit(hanging + behind)
    case.await_begun(2)
    assert engine.ended(0.0) == []
    assert engine.overdue(3600.0) == []
    assert sorted(engine.overdue(-1.0), key=lambda io: io.tag) == hanging
    assert engine.withdraw() == behind
    assert engine.in_flight == 2
    for io, (_, end) in zip(reversed(hanging), (pipes[1], pipes[0]), strict=True):
        os.write(end, filled(PAGE, io.tag))
        (ended,) = finish(engine, 1)
        assert (ended.io, ended.error) == (io, None)
        assert io.parts[0] == filled(PAGE, io.tag)
    assert (engine.in_flight, engine.overdue(-1.0)) == (0, [])
    assert os.fstat(file).st_size == 0, "what was withdrawn is not written"


def held(owner: mmap.mmap, memory: memoryview) -> bool:
    """Whether somebody else than its views keeps memory from being given back."""
    with suppress(BufferError):
        memory.release()
    try:
        owner.close()
    except BufferError:
        return True
    return False


def test_memory_stays_while_the_kernel_has_it(case: Case, pipes: list[tuple[int, int]]) -> None:
    engine, owner = case.open(2), mmap.mmap(-1, PAGE)
    memory = memoryview(owner)
    engine.submit([reading(0, pipes[0][0], 0, (memory,))])
    case.await_begun(1)
    assert held(owner, memory)
    os.write(pipes[0][1], b"x" * PAGE)
    finish(engine, 1)
    assert owner[:] == b"x" * PAGE
    assert not held(owner, memory)


def test_closing_does_not_wait_for_a_device_that_hangs_and_leaves_nothing(
    case: Case, pipes: list[tuple[int, int]]
) -> None:
    threads, descriptors = set(threading.enumerate()), os.listdir("/proc/self/fd")  # noqa: PTH208 - not files
    engine, owner = case.open(3), mmap.mmap(-1, PAGE)
    memory = memoryview(owner)
    ios = [reading(tag, pipe[0], 0, (memory,)) for tag, pipe in enumerate(pipes)]
    engine.submit([*ios, *ios])
    case.await_begun(3)
    assert engine.ended(0.0) == []
    engine.close()
    assert held(owner, memory), "the kernel may still write to it"
    assert engine.withdraw() == []
    hanging = set(threading.enumerate()) - threads
    assert all(thread.daemon for thread in hanging), "the interpreter's end would wait for it"
    for _, end in pipes:
        os.write(end, bytes(PAGE))
    for thread in hanging:
        thread.join(SOON_S)
    assert set(threading.enumerate()) == threads
    assert os.listdir("/proc/self/fd") == descriptors  # noqa: PTH208 - as above


def test_memory_stays_when_nothing_is_left_of_the_engine(case: Case, pipes: list[tuple[int, int]]) -> None:
    owner = mmap.mmap(-1, PAGE)
    memory = memoryview(owner)
    engine = case_of(case.name, ExitStack()).open(1)
    engine.submit([reading(0, pipes[0][0], 0, (memory,))])
    assert engine.ended(0.0) == []
    if case.name == ThreadEngine.name:
        while not engine.overdue(-1.0):  # a thread takes it when it comes to it
            engine.ended(0.001)
    engine.close()
    del engine
    gc.collect()
    assert held(owner, memory)
    os.write(pipes[0][1], bytes(PAGE))
    for thread in threading.enumerate():
        if thread.name.startswith("kvtier-disk-"):
            thread.join(SOON_S)


def test_closing_leaves_nothing(case: Case, file: int) -> None:
    threads, descriptors = set(threading.enumerate()), os.listdir("/proc/self/fd")  # noqa: PTH208 - not files
    engine = case.open(4)
    engine.submit([writing(tag, file, 0, (filled(PAGE, tag),)) for tag in range(20)])
    finish(engine, 20)
    engine.close()
    assert set(threading.enumerate()) == threads
    assert os.listdir("/proc/self/fd") == descriptors  # noqa: PTH208 - as above
    engine.close()
    engine.wake()
    assert os.listdir("/proc/self/fd") == descriptors  # noqa: PTH208 - as above
    assert engine.withdraw() == []
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.submit([])
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.ended(0.0)


def test_every_failure_has_its_errno(case: Case, tmp_path: Path, file: int) -> None:
    engine = case.open(2)
    os.pwrite(file, bytes(3 * PAGE), 0)
    read_only = os.open(tmp_path / "file", os.O_RDONLY)
    full = os.open("/dev/full", os.O_WRONLY)
    released = aligned(PAGE)
    released.release()
    cases = [
        (errno.EBADF, writing(0, read_only, 0, (aligned(PAGE),))),
        (errno.EBADF, reading(1, 1 << 20, 0, (aligned(PAGE),))),
        (errno.ENOSPC, writing(2, full, 0, (aligned(PAGE),))),
        (errno.EFAULT, reading(3, file, 0, (memoryview(bytes(PAGE)),))),
        (errno.EFAULT, reading(4, file, 0, (released,))),
        (errno.EFAULT, reading(5, file, 0, (aligned(PAGE)[::2],))),
        (errno.EINVAL, reading(6, file, 0, tuple(aligned(1) for _ in range(1025)))),
    ]
    for number, io in cases:
        error = outcome(engine, io)
        assert error, io
        assert error.errno == number, error
    assert engine.in_flight == 0
    assert outcome(engine, writing(7, file, 0, (memoryview(b"x" * PAGE),))) is None
    assert os.pread(file, PAGE, 0) == b"x" * PAGE
    os.close(read_only)
    os.close(full)


@pytest.mark.parametrize(("offset", "read"), [(2 * PAGE, PAGE), (3 * PAGE, 0), (9 * PAGE, 0)])
def test_reading_past_the_end_says_how_far_it_came(case: Case, file: int, offset: int, read: int) -> None:
    os.pwrite(file, bytes(3 * PAGE), 0)
    error = outcome(case.open(2), reading(0, file, offset, in_parts(aligned(2 * PAGE), 100)))
    assert error
    assert error.errno == errno.EIO
    assert error.strerror == f"read {read} of {2 * PAGE} bytes at offset {offset}"


def test_a_transfer_that_stops_short_goes_on(case: Case, pipes: list[tuple[int, int]]) -> None:
    size = 64 * PAGE  # a pipe holds 16 pages
    engine, memory, data = case.open(2), aligned(size), filled(size, 1)
    engine.submit([reading(0, pipes[0][0], 0, in_parts(memory, 100, 0, 3 * PAGE, 20 * PAGE))])

    def feed() -> None:
        left = data
        while left:
            left = left[os.write(pipes[0][1], left) :]

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    assert [ended.error for ended in finish(engine, 1)] == [None]
    feeder.join(SOON_S)
    assert memory == data


def test_a_transfer_that_stops_for_good_says_how_far_it_came(case: Case) -> None:
    outgoing, incoming = os.pipe()
    os.write(incoming, bytes(5000))
    os.close(incoming)
    error = outcome(case.open(2), reading(0, outgoing, 0, (aligned(2 * PAGE),)))
    assert error
    assert (error.errno, error.strerror) == (errno.EIO, "read 5000 of 8192 bytes at offset 0")
    os.close(outgoing)


@pytest.mark.parametrize("calls", [1, 5])
def test_another_thread_wakes_the_one_that_waits(case: Case, file: int, calls: int) -> None:
    engine, waits, returned = case.open(2), threading.Semaphore(0), threading.Semaphore(0)
    found = list[Ended]()

    def wait() -> None:
        for _ in range(3):
            waits.release()
            found.extend(engine.ended(3600.0))
            returned.release()

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    for _ in range(3):
        assert waits.acquire(timeout=SOON_S)
        for _ in range(calls):
            engine.wake()
        assert returned.acquire(timeout=SOON_S)
    waiter.join(SOON_S)
    assert found == []
    assert outcome_after_wakes(engine, file) is None


def outcome_after_wakes(engine: IOEngine, file: int) -> OSError | None:
    """What is ordered after wakes is still reported: they cost nothing but empty answers."""
    engine.submit([writing(0, file, 0, (filled(PAGE, 0),))])
    while True:
        for ended in engine.ended(SOON_S):
            return ended.error


def test_a_wake_before_the_wait_is_not_lost(case: Case) -> None:
    engine = case.open(2)
    engine.wake()
    waiter = threading.Thread(target=engine.ended, args=(3600.0,), daemon=True)
    waiter.start()
    waiter.join(SOON_S)
    assert not waiter.is_alive()


@given(data=st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("name", NAMES)
def test_any_mix_reads_what_was_written_last(name: str, data: st.DataObject) -> None:
    size, slots = 1000, 12
    depth = data.draw(st.integers(1, 5))
    with ExitStack() as stack:
        engine = case_of(name, stack).open(depth)
        file = stack.enter_context(tempfile.TemporaryFile())
        model = {slot: bytes(size) for slot in range(slots)}
        os.pwrite(file.fileno(), bytes(size * slots), 0)
        for _ in range(data.draw(st.integers(1, 4))):
            chosen = data.draw(st.lists(st.integers(0, slots - 1), unique=True, min_size=1))
            ios = []
            for slot in chosen:
                write = data.draw(st.booleans())
                memory = filled(size, data.draw(st.integers(0, 1 << 30))) if write else aligned(size)
                cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
                parts = in_parts(memory, *(b - a for a, b in zip([0, *cuts], cuts, strict=False)))
                ios.append((memory, BlockIO(slot, write, file.fileno(), slot * size, parts)))
            engine.submit([io for _, io in ios])
            assert {ended.error for ended in finish(engine, len(ios))} == {None}
            for memory, io in ios:
                if io.write:
                    model[io.tag] = bytes(memory)
                assert memory == model[io.tag]
        assert os.pread(file.fileno(), size * slots, 0) == b"".join(model.values())
