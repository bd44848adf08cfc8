"""Memory is filled at a start with what the disk had last: bounded, and never in anybody's way."""

import errno
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.unit.connector.disk.rig.blocks import KEY_BYTES, content_of, key_of, number_of
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, Fail, Keep
from tests.unit.connector.disk.rig.rig import Rig, rig_in

from kvtier_connector.core.behind.warm_start import Warmed, WarmStart
from kvtier_connector.core.index.index import BlockIndex, BlockState

BLOCKS = 12


class Memory:
    """An engine's memory before a rig's tier."""

    def __init__(self, rig: Rig, slots: int) -> None:
        self.rig = rig
        self.index = BlockIndex(slots, KEY_BYTES)

    def poll(self) -> None:
        progress = self.rig.tier.poll()
        if progress is not None:
            self.index.invalidate(progress.lost)
            self.index.commit(progress.loaded + progress.ended)

    def warm(
        self,
        most: int,
        *,
        wait_s: float = SOON_S,
        grow: Callable[[], bool] = lambda: False,
        pays: Callable[[], bool] = lambda: True,
    ) -> Warmed:
        until_s = time.monotonic() + wait_s
        start = WarmStart(self.index, most=most, until_s=until_s, poll=self.poll, grow=grow)
        return start.load(self.rig.tier, pays)

    def ready(self) -> set[int]:
        """Blocks that are there, each of which is as it was stored."""
        keys = [
            key_of(number) for number in range(BLOCKS) if self.index.state(key_of(number)) is BlockState.READY
        ]
        for key, slot in zip(keys, self.index.hold(keys).tolist(), strict=True):
            assert self.rig._view(slot) == content_of(number_of(key))
        self.index.unpin(keys)
        return set(map(number_of, keys))

    def settle(self) -> None:
        while self.rig.tier.loading:
            self.rig.tier.wait(SOON_S)
            self.poll()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A disk's folder as an engine has left it."""
    with rig_in(tmp_path) as rig:
        rig.stored(range(BLOCKS))
    return tmp_path


def test_a_new_engine_has_in_memory_what_the_disk_had_last_and_no_more_than_may_be(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        newest = rig.store.index.newest(5)
        warmed = memory.warm(5)
        assert memory.ready() == set(map(number_of, newest))
        assert (warmed.blocks, warmed.size_bytes) == (5, 5 * rig.tier.block_bytes)
        assert memory.index.newest(5) == newest, "they are as new in memory as they were on disk"
        assert memory.index.reservable == 16, "nothing of them is held"


def test_memory_knows_that_it_cannot_tell_whose_they_are(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        memory.warm(0)
        assert not memory.index.may_have_strays
        memory.warm(5)
        assert memory.index.may_have_strays


def test_what_memory_has_is_not_read_again_and_nothing_leaves_it(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 4)
        others = [key_of(100), key_of(101)]
        memory.index.commit(memory.index.reserve(others).keys)
        memory.warm(4)
        assert len(memory.ready()) == 2
        assert [memory.index.state(key) for key in others] == [BlockState.READY] * 2
        read = rig.disk.sent.total()
        assert memory.warm(4).blocks == 0
        assert rig.disk.sent.total() == read


def test_what_cannot_be_read_costs_its_place_alone(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        rig.engine.fault_next(Fail(errno.EIO), Fail(errno.EIO))
        assert memory.warm(8).blocks == len(memory.ready()) == 6
        assert memory.index.used == 6


def test_at_the_end_of_the_time_the_engine_serves_and_the_rest_arrives_later(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        rig.engine.fault(lambda _io: Keep())
        assert memory.warm(8, wait_s=0.05).blocks == 0
        under_way = rig.tier.loading
        rig.engine.release()
        memory.settle()
        assert len(memory.ready()) == under_way > 0
        assert memory.warm(8, wait_s=-1.0).blocks == 0


def test_a_disk_that_is_slower_than_computing_is_left_alone(folder: Path) -> None:
    with rig_in(folder) as rig:
        assert Memory(rig, 16).warm(8, pays=lambda: False).blocks == 0
        assert not rig.disk.sent


def test_a_disk_that_is_down_is_not_waited_for(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        rig.tier._store = None
        assert memory.warm(8).blocks == 0
        rig.tier._store = rig.store


def test_memory_that_comes_meanwhile_is_filled_too(folder: Path) -> None:
    with rig_in(folder) as rig:
        memory = Memory(rig, 16)
        memory.index.withhold(np.arange(2, 16, dtype=np.int32))
        coming = list(range(2, 10))

        def grow() -> bool:
            if coming:
                memory.index.give_back([coming.pop(0)])
            return bool(coming)

        newest = rig.store.index.newest(8)
        assert memory.warm(8, grow=grow).blocks == 8
        assert memory.index.newest(8) == newest, "what came last is not the newest for that"
        assert len(memory.ready()) == 8
