"""Neighbours on disk are moved by one transfer, and what happens to one of them is not the others' fault."""

import errno
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import BLOCK, content_of, key_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Short
from tests.unit.connector.disk.rig.rig import Rig, rig_in
from tests.unit.connector.disk.rig.tier_files import segment

from kvtier_connector.core.disk.io.engine import BlockIO

BLOCKS = 8
JOINED = 4
BAD = 5


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rig_in(tmp_path, 2 * BLOCKS, joined_blocks=JOINED) as rig:
        yield rig


def contents(numbers: list[int]) -> dict[int, bytes]:
    return {number: content_of(number) for number in numbers}


def others() -> list[int]:
    return [number for number in range(BLOCKS) if number != BAD]


def place_of(rig: Rig, number: int) -> int:
    [slot] = rig.store.index.pin([key_of(number)])
    rig.store.index.unpin([key_of(number)])
    return int(slot)


def touching(rig: Rig, number: int) -> Callable[[BlockIO], Fail | None]:
    """Have what touches a block on disk fail, whatever else it moves."""
    offset = place_of(rig, number) * BLOCK

    def choose(io: BlockIO) -> Fail | None:
        return Fail(errno.EIO) if io.offset <= offset < io.offset + len(io.memory) * BLOCK else None

    return choose


def test_neighbours_are_moved_together_whatever_their_order(rig: Rig) -> None:
    numbers = random.Random(1).sample(range(BLOCKS), BLOCKS)  # noqa: S311 - to be the same again
    assert sorted(rig.stored(numbers)) == list(range(BLOCKS))
    assert rig.loaded(reversed(numbers)) == contents(list(range(BLOCKS)))
    assert rig.engine.begun == {True: BLOCKS // JOINED, False: BLOCKS // JOINED}


def test_what_is_not_wanted_is_not_moved(rig: Rig) -> None:
    rig.stored(range(BLOCKS))
    assert rig.loaded(others()) == contents(others())
    assert rig.engine.begun[False] == 3  # 0 to 3; 4; 6 and 7


def test_a_block_that_cannot_be_read_costs_its_neighbours_nothing(rig: Rig) -> None:
    rig.stored(range(BLOCKS))
    rig.engine.fault(touching(rig, BAD))
    assert rig.loaded(range(BLOCKS)) == contents(others())
    assert rig.seen.lost == [key_of(BAD)]
    assert rig.engine.begun[False] == BLOCKS // JOINED + JOINED
    rig.engine.fault(lambda _io: None)
    assert [number for number in range(BLOCKS) if rig.tier.holds(key_of(number))] == others()


@pytest.mark.parametrize("fault", [Fail(errno.EIO), Short()])
def test_blocks_that_could_not_be_moved_together_are_moved_alone(rig: Rig, fault: Fail | Short) -> None:
    rig.engine.fault_next(fault, write=True)
    assert sorted(rig.stored(range(BLOCKS))) == list(range(BLOCKS))
    rig.engine.fault_next(fault, write=False)
    assert rig.loaded(range(BLOCKS)) == contents(list(range(BLOCKS)))
    assert rig.engine.begun == dict.fromkeys((True, False), BLOCKS // JOINED + JOINED)


def test_a_damaged_block_is_no_damage_to_its_neighbours(rig: Rig, tmp_path: Path) -> None:
    rig.stored(range(BLOCKS))
    with segment(tmp_path).open("r+b") as file:
        file.seek(place_of(rig, BAD) * BLOCK + 1000)
        file.write(b"damage")
    assert rig.loaded(range(BLOCKS)) == contents(others())
    assert rig.seen.lost == [key_of(BAD)]
    assert rig.tier.take_counts().corrupt == 1


def test_a_slot_that_nobody_wrote_is_not_read_with_its_neighbours(rig: Rig) -> None:
    rig.stored(range(BLOCKS))
    rig.store.begin_overwrite(place_of(rig, BAD))
    assert rig.loaded(range(BLOCKS)) == contents(others())
    assert rig.tier.take_counts().corrupt == 1
    assert rig.engine.begun[False] == 3


def test_memory_that_was_taken_back_is_not_written_with_its_neighbours(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend, lent = rig.tier._memory_of, list[memoryview]()

    def lending(slot: int) -> tuple[memoryview, ...]:
        lent.extend(lend(slot))
        if len(lent) == BAD + 1:
            lent[-1].release()
        return (lent[-1],)

    monkeypatch.setattr(rig.tier, "_memory_of", lending)
    assert len(rig.stored(range(BLOCKS))) == BLOCKS - 1
    assert rig.engine.begun[True] == 3
    monkeypatch.undo()
    held = [number for number in range(BLOCKS) if rig.tier.holds(key_of(number))]
    assert rig.loaded(held) == contents(held)
