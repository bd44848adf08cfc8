"""A staged engine with real files and a disk that hangs: memory that was taken back is never touched."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kvtier_connector.core.disk.io.engine import BlockIO, Completion
from kvtier_connector.core.disk.io.staged import StagedEngine
from kvtier_connector.core.disk.io.threads import ThreadEngine

BLOCK = 4096
SOON_S = 60.0
DEPTH = 2


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"".join(bytes([number, number + 100]) * (BLOCK // 2) for number in range(8)))
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def staged() -> Iterator[StagedEngine]:
    with closing(StagedEngine(ThreadEngine(DEPTH), BLOCK)) as engine:
        yield engine


def a_read(tag: int, descriptor: int, offset: int, parts: tuple[memoryview, ...]) -> BlockIO:
    return BlockIO(tag, write=False, descriptor=descriptor, offset=offset, memory=parts)


def all_ended(engine: StagedEngine) -> list[Completion]:
    found = list[Completion]()
    while engine.in_flight:
        ended = engine.take_completions(SOON_S)
        assert ended, "nothing ends"
        found += ended
    return sorted(found, key=lambda each: each.io.tag)


def test_more_than_it_has_memory_for_wait_and_arrive_where_they_belong(
    staged: StagedEngine, file: int
) -> None:
    memory = bytearray(8 * 100)
    view = memoryview(memory)
    ios = [
        a_read(tag, file, tag * BLOCK, (view[tag * 100 : tag * 100 + 31], view[tag * 100 + 31 :][:69]))
        for tag in range(8)
    ]
    staged.submit(ios)
    assert [each.io for each in all_ended(staged)] == ios
    assert memory == b"".join(bytes([number, number + 100]) * 50 for number in range(8))


def test_what_is_written_may_change_at_once(staged: StagedEngine, file: int) -> None:
    memory = bytearray(b"a" * BLOCK)
    staged.submit([BlockIO(1, write=True, descriptor=file, offset=BLOCK, memory=(memoryview(memory),))])
    memory[:] = b"b" * BLOCK
    [ended] = all_ended(staged)
    assert ended.error is None
    assert os.pread(file, BLOCK, BLOCK) == b"a" * BLOCK


def test_memory_that_was_taken_back_is_left_alone(staged: StagedEngine, file: int) -> None:
    memory = bytearray(b"x" * BLOCK)
    lent = memoryview(memory)
    staged.submit([a_read(1, file, BLOCK, (lent,))])
    lent.release()
    [ended] = all_ended(staged)
    assert ended.error is None
    assert memory == b"x" * BLOCK
    whole = memoryview(memory)
    staged.submit([a_read(2, file, BLOCK, (whole,))])  # and its own is free again
    all_ended(staged)
    assert memory == bytes([1, 101]) * (BLOCK // 2)


def test_memory_is_not_taken_back_while_it_is_filled(
    staged: StagedEngine, file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lent = memoryview(bytearray(BLOCK))
    copy = np.copyto

    def copy_meanwhile(target: object, source: object) -> None:
        with pytest.raises(BufferError):
            lent.release()
        copy(target, source)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "copyto", copy_meanwhile)
    staged.submit([a_read(1, file, BLOCK, (lent,))])
    all_ended(staged)
    assert lent == bytes([1, 101]) * (BLOCK // 2)
    lent.release()


def test_a_failed_read_leaves_memory_as_it_was(staged: StagedEngine, file: int) -> None:
    memory = bytearray(b"x" * BLOCK)
    staged.submit([a_read(1, file, 100 * BLOCK, (memoryview(memory),))])
    [ended] = all_ended(staged)
    assert ended.error is not None
    assert memory == b"x" * BLOCK


def test_what_is_overdue_is_named_as_it_was_given(file: int) -> None:
    reading, writing = os.pipe()

    def hang(_: int, parts: object, __: int) -> int:
        return os.readv(reading, parts)  # type: ignore[arg-type]

    with closing(StagedEngine(ThreadEngine(1, read=hang), BLOCK)) as engine:
        io = a_read(1, file, 0, (memoryview(bytearray(BLOCK)),))
        engine.submit([io])
        while not (overdue := engine.overdue(0.0)):
            engine.take_completions(0.01)
        assert overdue == [io]
        os.write(writing, b"z" * BLOCK)
        all_ended(engine)
    os.close(reading)
    os.close(writing)
