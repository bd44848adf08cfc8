"""Blocks that are read in parts: in which order, what is told when, and what is believed."""

import errno
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import (
    BLOCK,
    capacity_for,
    content_of,
    key_of,
    number_of,
    request_for,
)
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, Fail, Fault, Keep, Short
from tests.unit.connector.disk.rig.rig import Coming, Rig, rig_in
from tests.unit.connector.disk.rig.tier_files import segment

from kvtier_connector.core.copies.arrivals import WHOLE
from kvtier_connector.core.disk.io.engine import BlockIO
from kvtier_connector.errors import DiskError

ENDS = (1024, 2560, BLOCK)
STARTS = (0, 1024, 2560)


def begin(rig: Rig, *numbers: int) -> Coming:
    return rig.begin_parts([key_of(number) for number in numbers], ENDS)


def wait(rig: Rig, coming: Coming, parts: int) -> None:
    rig.arrivals.wait(coming.slots, coming.tickets, parts, SOON_S)


def part_of(io: BlockIO) -> int:
    return STARTS.index(io.offset % BLOCK)


def test_a_part_of_all_blocks_is_read_before_the_next_of_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(request_for(tmp_path, capacity_for(8)), depth=1)
    rig.stored(range(4))
    seen = list[tuple[int, int]]()
    submit = rig.engine.submit

    def watched(ios: Sequence[BlockIO]) -> None:
        seen.extend((part_of(io), sum(part.nbytes for part in io.memory)) for io in ios)
        submit(ios)

    monkeypatch.setattr(rig.engine, "submit", watched)
    coming = begin(rig, 0, 1, 2, 3)
    wait(rig, coming, WHOLE)
    assert seen == [(0, 1024)] * 4 + [(1, 1536)] * 4 + [(2, 1536)] * 4
    assert [bytes(view) for view in coming.views] == [content_of(number) for number in range(4)]
    rig.quiet()
    rig.tier.close()


@pytest.mark.parametrize("parts", [1, 2])
def test_parts_are_told_of_while_the_next_are_on_their_way(tmp_path: Path, parts: int) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda io: Keep() if part_of(io) == parts else None)
        coming = begin(rig, 0, 1, 2, 3)
        wait(rig, coming, parts)
        end = ENDS[parts - 1]
        assert [bytes(view[:end]) for view in coming.views] == [content_of(n)[:end] for n in range(4)]
        rig.engine.await_kept(4)
        assert not any(bytes(view[end:]).strip(b"\0") for view in coming.views)
        assert rig.seen.loaded == []
        rig.engine.release()
        wait(rig, coming, WHOLE)
        rig.quiet()
        assert rig.arrived == {number: content_of(number) for number in range(4)}


def test_whoever_hears_that_a_block_is_there_finds_that_the_tier_knows(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        wait(rig, begin(rig, 0, 1, 2, 3), WHOLE)
        now = rig.tier.poll()
        assert now is not None
        assert sorted(map(number_of, now.loaded)) == [0, 1, 2, 3]
        rig.take(now)


@pytest.mark.parametrize("place", [0, 1023, 1024, 2559, 2560, BLOCK - 1])
def test_damage_in_any_part_is_found(tmp_path: Path, place: int) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([5])
        slot = int(rig.store.index.rows(0, rig.store.shape.slots)[0][0])
        with segment(tmp_path).open("r+b") as blocks:
            blocks.seek(slot * BLOCK + place)
            blocks.write(bytes([content_of(5)[place] ^ 1]))
        with pytest.raises(DiskError, match="could not be read"):
            wait(rig, begin(rig, 5), WHOLE)
        rig.quiet()
        assert rig.seen.lost == [key_of(5)]
        assert rig.tier.take_counts().corrupt == 1
        assert not rig.tier.holds(key_of(5))


@pytest.mark.parametrize("fault", [Fail(errno.EIO), Short()])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_part_that_fails_ends_its_block_alone(tmp_path: Path, fault: Fault, part: int) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(3))
        left = [fault]
        rig.engine.fault(lambda io: left.pop() if left and part_of(io) == part else None)
        coming = begin(rig, 0, 1, 2)
        with pytest.raises(DiskError, match="could not be read"):
            wait(rig, coming, WHOLE)
        rig.quiet()
        assert len(rig.seen.lost) == 1
        assert rig.arrived == {n: content_of(n) for n in range(3) if key_of(n) not in rig.seen.lost}


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("blocks", [8, 12])
def test_a_disk_that_hangs_fails_what_it_has_and_what_is_behind_it(
    tmp_path: Path, part: int, blocks: int
) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(blocks))
        rig.engine.fault(lambda io: Keep() if part_of(io) == part else None)
        coming = begin(rig, *range(blocks))
        rig.engine.await_kept(8)  # its depth: the others wait behind them
        rig.engine.become_late()
        with pytest.raises(DiskError, match="could not be read"):
            wait(rig, coming, WHOLE)
        rig.until_down()
        assert sorted(map(number_of, rig.seen.lost)) == list(range(blocks))
        rig.engine.release()
        rig.quiet()
        assert rig.arrived == {}
        rig.until_up()
        assert rig.loaded(range(blocks)) == {number: content_of(number) for number in range(blocks)}


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_reset_between_two_parts_ends_the_block(tmp_path: Path, part: int) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([1])
        rig.engine.fault(lambda io: Keep() if part_of(io) == part else None)
        coming = begin(rig, 1)
        rig.engine.await_kept(1)
        rig.tier.clear()
        rig.engine.release()
        with pytest.raises(DiskError, match="could not be read"):
            wait(rig, coming, WHOLE)
        rig.quiet()
        assert rig.arrived == {}
        assert rig.tier.take_counts().corrupt == 0


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_close_between_two_parts_ends_the_block(tmp_path: Path, part: int) -> None:
    rig = Rig(request_for(tmp_path, capacity_for(8)))
    rig.stored([1])
    rig.engine.fault(lambda io: Keep() if part_of(io) == part else None)
    coming = begin(rig, 1)
    rig.engine.await_kept(1)
    closing = threading.Thread(target=rig.tier.close)
    closing.start()
    while not rig.disk.within._loop.is_closing:
        time.sleep(0.001)  # leaves the interpreter to the other threads
    rig.engine.release()
    closing.join()
    if part < 2:
        with pytest.raises(DiskError, match="could not be read"):
            wait(rig, coming, WHOLE)
    else:
        wait(rig, coming, WHOLE)
    rig = Rig(request_for(tmp_path, capacity_for(8)))
    assert rig.loaded([1]) == {1: content_of(1)}
    rig.tier.close()
