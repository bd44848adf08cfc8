"""Both engines as tests ask for them, and what is read and written through them."""

import errno
import mmap
import os
import random
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest

from kvtier_connector.core.disk.io.engine import BlockIO, Completion, EngineUnavailableError, IOEngine
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


def reading(tag: int, descriptor: int, offset: int, parts: tuple[memoryview, ...]) -> BlockIO:
    return BlockIO(tag, write=False, descriptor=descriptor, offset=offset, memory=parts)


def writing(tag: int, descriptor: int, offset: int, parts: tuple[memoryview, ...]) -> BlockIO:
    return BlockIO(tag, write=True, descriptor=descriptor, offset=offset, memory=parts)


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


def finish(engine: IOEngine, count: int) -> list[Completion]:
    found: list[Completion] = []
    while len(found) < count:
        ended = engine.take_completions(SOON_S)
        assert ended, f"{len(found)} of {count} have ended"
        found += ended
    assert len(found) == count
    return found


def outcome(engine: IOEngine, io: BlockIO) -> OSError | None:
    engine.submit([io])
    (ended,) = finish(engine, 1)
    assert ended.io is io
    return ended.error
