"""Blocks that a worker checks while it copies them: whose word counts, and what becomes of the others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import BLOCK, MEANING, content_of, key_of, number_of
from tests.unit.connector.disk.rig.faulty_engine import SOON_S
from tests.unit.connector.disk.rig.rig import IMPATIENT, Coming, Rig, rig_in
from tests.unit.connector.disk.rig.tier_files import segment

from kvtier_connector.core.copies.arrivals import DOUBTED, FAILED, WHOLE
from kvtier_connector.core.disk.files.fingerprint import bound_checksum, seeded_checksum
from kvtier_connector.errors import DiskError

ENDS = (1024, 2560, BLOCK)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A tier of four blocks whose thread waits for workers until it is told not to."""
    with rig_in(tmp_path, timings=replace(IMPATIENT, worker_patience_s=SOON_S)) as rig:
        rig.stored(range(4))
        yield rig
        rig.disk.within._loop.partial_reads.patience_s = 0.0


@pytest.fixture
def checked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The blocks that the disk's own thread checks."""
    seen, check = list[int](), rig.store.checksum_in_memory

    def watched(key: bytes, parts: tuple[memoryview, ...]) -> int | None:
        seen.append(number_of(key))
        return check(key, parts)

    monkeypatch.setattr(rig.store, "checksum_in_memory", watched)
    return seen


def all_there(rig: Rig, *numbers: int) -> Coming:
    coming = rig.begin_parts([key_of(number) for number in numbers], ENDS)
    rig.arrivals.wait(coming.slots, coming.tickets, len(ENDS), SOON_S)
    return coming


def say(rig: Rig, coming: Coming, *found: int) -> None:
    for slot, ticket, each in zip(coming.slots.tolist(), coming.tickets.tolist(), found, strict=False):
        rig.arrivals.tell(slot, ticket, each)


def damage(path: Path, rig: Rig, number: int) -> None:
    slots, keys = rig.store.index.rows(0, rig.store.shape.slots)
    slot = {number_of(key.tobytes()): slot for slot, key in zip(slots.tolist(), keys, strict=True)}[number]
    with segment(path).open("r+b") as blocks:
        blocks.seek(slot * BLOCK + 7)
        blocks.write(bytes([content_of(number)[7] ^ 1]))


def test_a_worker_has_all_that_it_needs_to_check(rig: Rig) -> None:
    coming = all_there(rig, 2, 3)
    for number, slot, view in zip((2, 3), coming.slots.tolist(), coming.views, strict=True):
        seed, checksum = rig.arrivals.seed_and_checksum(slot)
        assert checksum == bound_checksum(MEANING.number, key_of(number), content_of(number))
        assert seeded_checksum(seed, view) == checksum
    assert rig.seen.loaded == []
    say(rig, coming, WHOLE, WHOLE)


def test_what_a_worker_has_found_right_is_not_checked_again(rig: Rig, checked: list[int]) -> None:
    say(rig, all_there(rig, 0, 1, 2, 3), WHOLE, WHOLE, WHOLE, WHOLE)
    rig.quiet()
    assert rig.arrived == {number: content_of(number) for number in range(4)}
    assert checked == []


def test_one_that_is_right_does_not_wait_for_the_others(rig: Rig, checked: list[int]) -> None:
    coming = all_there(rig, 0, 1)
    say(rig, coming, WHOLE)
    rig.step()
    assert rig.arrived == {0: content_of(0)}
    say(rig, coming, WHOLE, WHOLE)
    rig.quiet()
    assert rig.arrived == {0: content_of(0), 1: content_of(1)}
    assert checked == []


def test_damage_that_a_worker_finds_is_found_again_before_it_is_told(
    rig: Rig, checked: list[int], tmp_path: Path
) -> None:
    damage(tmp_path, rig, 1)
    coming = all_there(rig, 0, 1)
    say(rig, coming, WHOLE, DOUBTED)
    with pytest.raises(DiskError, match="could not be read"):
        rig.arrivals.wait(coming.slots, coming.tickets, WHOLE, SOON_S)
    now = rig.tier.poll()
    assert now is not None
    assert now.lost == [key_of(1)]
    rig.take(now)
    rig.quiet()
    assert rig.tier.take_counts().corrupt == 1
    assert not rig.tier.holds(key_of(1))
    assert checked == [1]


def test_a_doubt_about_a_block_that_is_right_costs_nobody_the_block(rig: Rig, checked: list[int]) -> None:
    coming = all_there(rig, 0)
    say(rig, coming, DOUBTED)
    rig.arrivals.wait(coming.slots, coming.tickets, WHOLE, SOON_S)
    rig.quiet()
    assert rig.arrived == {0: content_of(0)}
    assert checked == [0]


def test_what_no_worker_comes_to_is_checked_all_the_same(
    rig: Rig, checked: list[int], tmp_path: Path
) -> None:
    damage(tmp_path, rig, 1)
    coming = all_there(rig, 0, 1)
    assert rig.tier.poll() is None
    rig.disk.within._loop.partial_reads.patience_s = 0.0
    rig.quiet()
    assert rig.arrived == {0: content_of(0)}
    assert sorted(checked) == [0, 1]
    found = [rig.arrivals.how_far(slot, coming.tickets[0]) for slot in coming.slots.tolist()]
    assert found == [WHOLE, FAILED]


@pytest.mark.parametrize("how", ["cleared", "closed", "gone"])
def test_what_is_not_checked_in_time_is_not_believed(rig: Rig, tmp_path: Path, how: str) -> None:
    coming = all_there(rig, 0, 1)
    say(rig, coming, FAILED + 1)
    if how == "cleared":
        rig.tier.clear()
    elif how == "closed":
        rig.tier.close()
    else:
        tmp_path.rename(tmp_path.with_name("elsewhere"))
    with pytest.raises(DiskError, match="could not be read"):
        rig.arrivals.wait(coming.slots, coming.tickets, WHOLE, SOON_S)
    rig.quiet()
    assert rig.arrived == {}
    assert rig.tier.take_counts().corrupt == 0
    if how == "gone":
        tmp_path.with_name("elsewhere").rename(tmp_path)
