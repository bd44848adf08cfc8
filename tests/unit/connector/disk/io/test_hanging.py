"""What both engines hold while a device really hangs (a pipe), and what they leave when they are closed."""

import gc
import mmap
import os
import threading
from contextlib import ExitStack, suppress

import pytest
from tests.unit.connector.disk.io.cases import (
    PAGE,
    SOON_S,
    Case,
    aligned,
    case_of,
    filled,
    finish,
    reading,
    writing,
)

from kvtier_connector.core.disk.io.threads import ThreadEngine


def test_a_device_that_hangs_is_seen_and_does_not_lose_what_it_ends_late(
    case: Case, file: int, pipes: list[tuple[int, int]]
) -> None:
    engine = case.open(2)
    hanging = [reading(tag, pipes[tag][0], 0, (aligned(PAGE),)) for tag in range(2)]
    behind = [writing(tag, file, tag * PAGE, (filled(PAGE, tag),)) for tag in range(2, 5)]
    engine.submit(hanging + behind)
    case.await_begun(2)
    assert engine.take_completions(0.0) == []
    assert engine.overdue(3600.0) == []
    assert sorted(engine.overdue(-1.0), key=lambda io: io.tag) == hanging
    assert engine.in_flight == 5
    assert os.fstat(file).st_size == 0, "what waits for its turn is not written"
    for io, (_, end) in zip(reversed(hanging), (pipes[1], pipes[0]), strict=True):
        os.write(end, filled(PAGE, io.tag))
    ended = finish(engine, 5)
    assert {each.io for each in ended} == {*hanging, *behind}
    assert all(each.error is None for each in ended)
    assert [io.memory[0] == filled(PAGE, io.tag) for io in hanging] == [True, True]
    assert (engine.in_flight, engine.overdue(-1.0)) == (0, [])


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
    assert engine.take_completions(0.0) == []
    engine.close()
    assert held(owner, memory), "the kernel may still write to it"
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
    assert engine.take_completions(0.0) == []
    if case.name == ThreadEngine.name:
        while not engine.overdue(-1.0):  # a thread takes it when it comes to it
            engine.take_completions(0.001)
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
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.submit([])
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.take_completions(0.0)
