"""A disk that is looked at beside the engine, and what is kept of that."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import MEANING, content_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Keep
from tests.unit.connector.disk.rig.rig import IMPATIENT, Rig, found_by_the_next, rig_in

from kvtier_connector.core.behind.break_even import Rates, TokenSpan
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS
from kvtier_connector.errors import DiskError

SOON_TOO_LONG = replace(IMPATIENT, probe_patience_s=0.01)


def looked_at(rig: Rig) -> float:
    """Have the disk looked at; returns its bandwidth, when it is known."""
    rig.tier.learn(0.0, is_in_use=False)
    while (found := rig.tier.break_even.read.per_second) is None:
        rig.step()
    return found


def test_an_empty_tier_is_looked_at_by_writing_what_nobody_has(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        assert looked_at(rig) > 0
        assert rig.engine.begun == {True: 8, False: 8}
        assert rig.stored(range(16)) == list(range(16))
    assert found_by_the_next(tmp_path) == {number: content_of(number) for number in range(16)}


@pytest.mark.parametrize("direct", [False, True])
def test_a_tier_that_holds_blocks_is_only_read(tmp_path: Path, *, direct: bool) -> None:
    with rig_in(tmp_path, direct=direct) as rig:
        rig.stored(range(3))
        assert looked_at(rig) > 0
        assert rig.engine.begun == {True: 3, False: 3}
        assert rig.loaded(range(3)) == {number: content_of(number) for number in range(3)}


def test_what_is_written_and_not_known_to_the_index_yet_is_left_alone(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        keys = rig.begin_store(range(2))
        assert rig.disk.wait(60)
        rig.disk.within.send([])  # nothing is taken note of: the index has them pending
        assert looked_at(rig) > 0
        rig.quiet()
        assert all(map(rig.tier.holds, keys))
        assert rig.loaded(range(2)) == {number: content_of(number) for number in range(2)}


def test_a_disk_that_fails_says_nothing_of_its_pace(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.engine.fault(lambda _io: Fail(errno.EIO))
        rig.tier.learn(0.0, is_in_use=False)
        rig.engine.await_begun(8)
        rig.engine.fault(lambda _io: None)
        assert rig.stored([1]) == [1]  # it serves all the same
        assert rig.tier.break_even.read.per_second is None


def test_a_disk_that_takes_too_long_counts_as_slow(tmp_path: Path) -> None:
    with rig_in(tmp_path, timings=SOON_TOO_LONG) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        assert looked_at(rig) < 4096 / 0.01
        rig.engine.release()


def test_a_disk_that_is_read_need_not_be_looked_at(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.tier.learn(0.0, is_in_use=True)
        rig.loaded(range(4))
        assert rig.tier.break_even.read.per_second
        assert rig.engine.begun == {True: 4, False: 4}


def test_what_was_learnt_is_there_for_the_next_engine(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        assert rig.store.rates == Rates()
        looked_at(rig)
        rig.tier.break_even.prefill.add(TokenSpan.of(0, 1000), 0.5)
        rig.tier.learn(1.0, is_in_use=True)  # a figure that was not known is kept at once
        rig.stored([1])
    with rig_in(tmp_path) as rig:
        assert rig.store.rates.token_s == pytest.approx(0.0005)
        assert rig.tier.break_even.read.per_second == pytest.approx(rig.store.rates.read_bytes_per_s)
        rig.tier.break_even.prefill.add(TokenSpan.of(0, 1000), 0.001)
        rig.tier.learn(1.0, is_in_use=True)
        rig.tier.learn(DEFAULT_TIMINGS.relearn_s, is_in_use=True)
        rig.stored([2])
        before = rig.store.rates
        rig.tier.learn(2 * DEFAULT_TIMINGS.relearn_s, is_in_use=True)
        rig.stored([3])
        assert rig.store.rates == before
        assert before.token_s != pytest.approx(0.0005)


def test_a_file_of_somebody_else_is_not_believed(tmp_path: Path) -> None:
    with rig_in(tmp_path):
        pass
    (tmp_path / MEANING.folder / "rates").write_bytes(b"\xff\x00")
    with rig_in(tmp_path) as rig:
        assert rig.store.rates == Rates()


def test_writes_that_do_not_end_are_not_taken_for_reads(tmp_path: Path) -> None:
    with rig_in(tmp_path, timings=SOON_TOO_LONG) as rig:
        rig.engine.fault(lambda io: Keep() if io.write else None)
        assert looked_at(rig) < 4096 / 0.01
        assert rig.engine.begun == {True: 8}
        rig.begin_store(range(16))  # into slots that the kernel may still write to
        rig.engine.release()
        rig.quiet()
        assert rig.loaded(range(16)) == {number: content_of(number) for number in range(16)}


def test_a_tier_that_cannot_keep_what_it_learnt_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_store: Store, _text: str) -> None:
        raise DiskError("the disk is full")

    monkeypatch.setattr(Store, "keep_rates", full)
    with rig_in(tmp_path) as rig:
        looked_at(rig)
        rig.tier.learn(1.0, is_in_use=True)
        assert rig.stored([1]) == [1]
        assert rig.loaded([1]) == {1: content_of(1)}
        assert rig.seen.notes == []
