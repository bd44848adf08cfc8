"""A remote tier with memory in front of it, as an engine's scheduler has one."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

import numpy as np

from kvtier_common.backoff import Backoff
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.tier import RemoteTier
from kvtier_connector.core.remote.transfers import RemoteThreads, RemoteTimings
from kvtier_connector.core.remote.values import BlockLayout

BLOCK_BYTES = 5 << 20
"""More than one value has."""
SLOTS = 8
KEYS = [bytes([number]) * 36 for number in range(SLOTS)]
LONG_S = 60.0


def content_of(number: int) -> bytes:
    return np.random.default_rng(number).bytes(BLOCK_BYTES)


class Connectable(Protocol):
    """A store that runs."""

    def connect(self) -> StoreConnection:
        """Connect to it."""


class Engine:
    """Memory of two slices, and a tier behind it."""

    def __init__(self, store: Connectable, layout: BlockLayout, connections: int) -> None:
        self.memory = bytearray(SLOTS * BLOCK_BYTES)
        view = memoryview(self.memory)
        half = BLOCK_BYTES // 2

        def memory_of(slot: int) -> tuple[memoryview, ...]:
            start = slot * BLOCK_BYTES
            return view[start : start + half], view[start + half : start + BLOCK_BYTES]

        threads = RemoteThreads(
            store.connect,
            layout,
            connections=connections,
            ttl_s=0,
            connect_timeout_s=LONG_S,
            reads_newest=True,
            timings=RemoteTimings(retry=Backoff(0.01, 0.1), moved_s=0.1, closing_s=LONG_S),
        )
        self.tier = RemoteTier(
            threads,
            capacity_bytes=1 << 30,
            block_bytes=BLOCK_BYTES,
            memory_of=memory_of,
            most_writes=SLOTS,
            write_bytes_per_s=0,
            always=True,
        )
        self.seen = Progress()

    def wait(self, *, until_up: bool = True) -> None:
        """Have the tier come up, or go down."""
        while self.tier.is_down == until_up:
            self._look()

    def learn_bandwidth(self) -> None:
        """Wait for what the tier finds out when it comes up, without being told to."""
        while self.tier.break_even.read.per_second is None:
            self._look()

    def write(self, slots: Sequence[int]) -> None:
        self.begin_to_write(slots)
        self.settle()

    def begin_to_write(self, slots: Sequence[int]) -> None:
        keys = [KEYS[slot] for slot in slots]
        granted = self.tier.admit(self.tier.lacking(keys))
        self.tier.store(granted, np.array([KEYS.index(key) for key in granted], np.int32), Progress())

    def ask(self, slots: Sequence[int]) -> list[Presence]:
        keys = [KEYS[slot] for slot in slots]
        self.tier.ask([key for key in keys if self.tier.presence(key) is Presence.UNKNOWN])
        while self.tier.asking:
            self._look()
        return [self.tier.presence(key) for key in keys]

    def read(self, slots: Sequence[int]) -> None:
        self.begin_to_read(slots)
        self.settle()

    def begin_to_read(self, slots: Sequence[int]) -> None:
        self.tier.load([KEYS[slot] for slot in slots], np.array(slots, np.int32))

    def fill(self, slot: int) -> None:
        self.memory[slot * BLOCK_BYTES : (slot + 1) * BLOCK_BYTES] = content_of(slot)

    def has(self, slot: int, number: int | None = None) -> bool:
        """Whether a slot has what `fill` puts there, or into the slot of that number."""
        content = content_of(slot if number is None else number)
        return self.memory[slot * BLOCK_BYTES : (slot + 1) * BLOCK_BYTES] == content

    def settle(self) -> None:
        while self.tier.is_busy:
            self._look()

    def _look(self) -> None:
        self.tier.wait(LONG_S)
        progress = self.tier.poll()
        if progress is not None:
            self.seen.loaded += progress.loaded
            self.seen.lost += progress.lost
            self.seen.stored += progress.stored
            self.seen.released += progress.released
            self.seen.notes += progress.notes


def layout_of(model: str = "m", share: str = "team", mac_key: bytes = b"") -> BlockLayout:
    return BlockLayout(share, lambda: fingerprint({"model": model}), BLOCK_BYTES, mac_key=mac_key)


@contextmanager
def engines(
    store: Connectable, *models: str, share: str = "team", mac_key: bytes = b"", connections: int = 2
) -> Generator[list[Engine]]:
    with ExitStack() as stack:
        made = [Engine(store, layout_of(model, share, mac_key), connections) for model in models]
        for engine in made:
            stack.callback(engine.tier.close)
            engine.wait()
        yield made
