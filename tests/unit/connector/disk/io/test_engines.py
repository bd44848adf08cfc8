"""Both engines keep the same promises, with real files and pipes: what they move, and what they say of it."""

import errno
import os
import random
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.connector.disk.io.cases import (
    NAMES,
    PAGE,
    SOON_S,
    Case,
    aligned,
    case_of,
    filled,
    finish,
    in_parts,
    outcome,
    reading,
    writing,
)

from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine


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
    assert engine.take_completions(0.0) == []
    assert engine.take_completions(0.001) == []
    assert (engine.in_flight, engine.overdue(-1.0)) == (0, [])


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
    found = list[Completion]()

    def wait() -> None:
        for _ in range(3):
            waits.release()
            found.extend(engine.take_completions(3600.0))
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
        for ended in engine.take_completions(SOON_S):
            return ended.error


def test_a_wake_before_the_wait_is_not_lost(case: Case) -> None:
    engine = case.open(2)
    engine.wake()
    waiter = threading.Thread(target=engine.take_completions, args=(3600.0,), daemon=True)
    waiter.start()
    waiter.join(SOON_S)
    assert not waiter.is_alive()


@given(data=st.data())
@settings(max_examples=25)
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
