"""What was forgotten is never found again, and all else is: with transfers under way, with the disk off."""

import errno
from collections.abc import Iterable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.shared.waiting import eventually
from tests.unit.connector.disk.rig.blocks import content_of, key_of
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, Fail, Keep
from tests.unit.connector.disk.rig.rig import Rig, found_by_the_next, rig_in

from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.errors import DiskError


def contents(*numbers: int, epoch: int = 0) -> dict[int, bytes]:
    return {number: content_of(number, epoch) for number in numbers}


def _forget(rig: Rig, numbers: Iterable[int]) -> None:
    now = Progress()
    rig.tier.forget([key_of(number) for number in numbers], now)
    rig.take(now)


def _until_forgotten(rig: Rig) -> None:
    def is_done() -> bool:
        now = rig.tier.poll()
        if now is not None:
            rig.take(now)
        return not rig.tier.is_forgetting

    eventually(is_done, "end of forgetting")


def test_what_is_forgotten_is_not_found_and_the_rest_is_by_the_next_start_too(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(6))
        _forget(rig, [1, 3, 9])
        assert [number for number in range(6) if rig.tier.holds(key_of(number))] == [0, 2, 4, 5]
        _until_forgotten(rig)
        assert rig.stored([1, 7], epoch=1) == [1, 7]
    assert found_by_the_next(tmp_path) == contents(0, 2, 4, 5) | contents(1, 7, epoch=1)


def test_everything_forgotten_leaves_a_disk_that_keeps_what_comes(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(6))
        rig.tier.begin_anew("e", Progress())
        assert rig.tier.used == 0
        assert rig.stored([2], epoch=1) == [2]
    assert found_by_the_next(tmp_path) == contents(2, epoch=1)


@pytest.mark.parametrize("everything", [False, True])
def test_transfers_under_way_bring_nothing_back(tmp_path: Path, *, everything: bool) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([0, 1])
        rig.begin_store([5, 6])
        rig.engine.await_kept(4)
        if everything:
            now = Progress()
            rig.tier.begin_anew("e", now)
            rig.take(now)
        else:
            _forget(rig, [0, 1, 5, 6])
        assert rig.tier.is_forgetting
        rig.engine.fault(lambda _io: None)
        rig.engine.release()
        rig.quiet()
        assert sorted(rig.seen.lost) == [key_of(0), key_of(1)]
        assert not set(map(key_of, (5, 6))) & set(rig.seen.stored)
        assert rig.arrived == {}
        assert not any(rig.tier.holds(key_of(number)) for number in (0, 1, 5, 6))
        _until_forgotten(rig)
        assert rig.stored([6], epoch=1) == [6]
    kept = {} if everything else contents(2, 3)
    assert found_by_the_next(tmp_path) == kept | contents(6, epoch=1)


def test_what_is_forgotten_while_the_disk_is_off_is_not_there_when_it_comes_back(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([1])
        rig.until_down()
        _forget(rig, [2])
        rig.until_up()
        assert not rig.tier.holds(key_of(2))
        _until_forgotten(rig)
    assert 2 not in found_by_the_next(tmp_path)


def test_a_write_under_way_when_the_disk_goes_off_brings_nothing_back(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store([5])
        rig.engine.await_kept(1)
        _forget(rig, [5])
        rig.engine.become_late()
        rig.until_down()
        rig.engine.fault(lambda _io: None)
        rig.engine.release()
        rig.until_up()
        assert not rig.tier.holds(key_of(5))
    assert 5 not in found_by_the_next(tmp_path)


def test_what_is_forgotten_before_it_is_known_that_the_disk_is_off_is_gone_when_it_comes_back(
    tmp_path: Path,
) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([1])
        eventually(lambda: rig.attempts > 0, "another opening of the disk")
        _forget(rig, [2])  # an idle engine has not looked since
        _until_forgotten(rig)
        rig.until_up()
        assert not rig.tier.holds(key_of(2))
    assert 2 not in found_by_the_next(tmp_path)


def test_what_cannot_be_put_down_as_forgotten_is_gone_when_the_disk_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise DiskError("no space left on device")

    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        monkeypatch.setattr(rig.store, "record", refuse)
        _forget(rig, [2])
        rig.until_down()
        _until_forgotten(rig)
        rig.until_up()
        assert not rig.tier.holds(key_of(2))
    assert 2 not in found_by_the_next(tmp_path)


def test_forgetting_lasts_until_it_is_put_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        record, begun, may_end = rig.store.record, Event(), Event()

        def slowly(*arguments: Any) -> None:  # noqa: ANN401 - as they come
            begun.set()
            assert may_end.wait(SOON_S)
            record(*arguments)

        monkeypatch.setattr(rig.store, "record", slowly)
        _forget(rig, [2])
        assert begun.wait(SOON_S)
        assert rig.tier.is_forgetting
        may_end.set()
        _until_forgotten(rig)
