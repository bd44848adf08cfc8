"""Engines to be killed: each stores blocks as fast as it can, evicting, and writes down what it was told.

A process of its own that has imported everything makes one by a fork for every line of its input, `folder log
seed`, answers with its number, and, at an empty line, waits for its end: starting takes a few milliseconds.
"""

import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.unit.connector.disk.rig.blocks import (
    BLOCK,
    capacity_for,
    content_of,
    key_of,
    number_of,
    request_for,
)

from kvtier_connector import config as config_module
from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.files import store as store_module
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.choose import open_engine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.timings import Timings
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.disk.transfers.messages import Event, Message

SLOTS = 96
MEMORY_SLOTS = 48
KEYS = 400
TIMINGS = Timings(check_s=0.002)
"""The journal is looked after so often that the engine is often killed while it is written anew."""
BEGUN, STORED = "begun", "stored"


class LoggedDisk:
    """Writes down every slot before its bytes may change, and every block when it is reported stored."""

    def __init__(self, disk: DiskThread, log: int) -> None:
        self.within = disk
        self._log = log

    def send(self, messages: Sequence[Message]) -> None:
        self._note(BEGUN, [message for message in messages if isinstance(message, Order) and message.write])
        self.within.send(messages)

    def take_events(self) -> list[Event]:
        found = self.within.take_events()
        ended = [each for each in found if isinstance(each, Ended) and each.error is None]
        self._note(STORED, [each.order for each in ended if each.order.write])
        return found

    def wait(self, timeout_s: float) -> bool:
        return self.within.wait(timeout_s)

    def has_begun(self) -> bool:
        return True

    def is_stuck(self) -> bool:
        return self.within.is_stuck()

    def close(self, timeout_s: float) -> None:
        self.within.close(timeout_s)

    def _note(self, what: str, orders: list[Order]) -> None:
        lines = [f"{what} {order.slot} {number_of(order.key)}\n" for order in orders]
        os.write(self._log, "".join(lines).encode())


def store_for_ever(path: Path, log: int, seed: int) -> None:
    memory = bytearray(MEMORY_SLOTS * BLOCK)

    def parts(slot: int) -> tuple[memoryview, ...]:
        return (memoryview(memory)[slot * BLOCK : (slot + 1) * BLOCK],)

    request = request_for(path, capacity_for(SLOTS))
    store = Store.open(request)
    disk = DiskThread(DiskLoop(store, lambda: Store.open(request), open_engine(16)[0], 60.0, timings=TIMINGS))
    tier = DiskTier(
        LoggedDisk(disk, log),  # type: ignore[arg-type] # has what is asked of it
        store,
        block_bytes=BLOCK,
        memory_of=parts,
        most_writes=MEMORY_SLOTS,
        budget=WriteBudget(0, 0.0),
    )
    chance = random.Random(seed)  # noqa: S311 - to be the same again
    free, slot_of = list(range(MEMORY_SLOTS)), dict[bytes, int]()
    known = {key_of(number): content_of(number) for number in range(KEYS)}

    def settle(now: Progress | None) -> None:
        if now is not None:
            free.extend(slot_of.pop(key) for key in now.released)

    while True:
        some = chance.sample(range(KEYS), min(len(free), chance.randrange(1, 24)))
        wanted = [key for key in tier.lacking([key_of(number) for number in some]) if key not in slot_of]
        for key in wanted:
            slot_of[key] = free.pop()
            parts(slot_of[key])[0][:] = known[key]
        now = Progress()
        tier.store(wanted, np.array([slot_of[key] for key in wanted], np.int32), now)
        settle(now)
        disk.wait(1.0)
        settle(tier.poll())


def main() -> None:
    for module in (store_module, config_module):
        module.DISK_SPARE_BYTES = 48 << 10  # type: ignore[attr-defined] # the journal is soon full
    for line in sys.stdin:
        path, log, seed = line.split()
        child = os.fork()
        if child == 0:
            store_for_ever(Path(path), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), int(seed))
        os.write(1, f"{child}\n".encode())
        sys.stdin.readline()
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
