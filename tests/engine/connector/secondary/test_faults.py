"""Our disk tier behind vLLM's own CPU tier, on a disk that hangs, fails or goes: every job ends."""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.engine.connector.secondary.tiering import (
    KEYS,
    QUIET_S,
    ROW_BYTES,
    ROWS,
    Start,
    Unsure,
    chunks,
    content,
    start,
    stored,
    until,
)

from kvtier_connector.core.disk.files.store import Store

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
__all__ = ["start"]  # a fixture


def test_a_disk_that_hangs_holds_nobodys_memory(start: Start) -> None:
    tiering = start(timeout_s=QUIET_S)
    keys = stored(tiering)
    disk = Unsure.under(tiering.tier)
    disk.hangs = True
    tiering.tier._timeout_s = 0.2
    assert tiering.load(keys) == []
    assert tiering.metrics()["degraded"] == 1

    others = chunks(ROWS, first=100)  # in all of memory, also where the disk was to put its chunks
    slots = tiering.begin_store(others)
    tiering.finish()
    disk.hangs = False
    until(tiering, lambda: not tiering.tier._is_off)
    tiering.tier._timeout_s = QUIET_S
    assert [bytes(tiering.row(slot)) for slot in slots] == [content(key) for key in others]
    assert tiering.load(keys) == keys
    assert tiering.metrics()["degraded"] == 0


def test_a_disk_that_hangs_when_it_is_to_store(start: Start) -> None:
    tiering = start(timeout_s=0.2)
    disk = Unsure.under(tiering.tier)
    disk.hangs = True
    tiering.store(chunks(KEYS))
    tiering.reset()
    others = chunks(ROWS, first=100)
    tiering.begin_store(others)  # into the memory that the disk was to write
    disk.hangs = False
    until(tiering, lambda: not tiering.tier._is_off)
    tiering.finish()
    tiering.reset()
    assert set(tiering.load(chunks(KEYS))) <= set(chunks(KEYS))  # with their own bytes, if any
    assert not tiering.tier._jobs.given_up


@pytest.mark.parametrize("loads", [True, False])
def test_a_disk_thread_that_does_not_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch, *, loads: bool
) -> None:
    tiering = start(timeout_s=QUIET_S)
    keys = stored(tiering)
    stuck, go_on = threading.Event(), threading.Event()
    check = Store.check

    def hang(store: Store) -> None:
        stuck.set()
        assert go_on.wait(QUIET_S)
        check(store)

    monkeypatch.setattr(Store, "check", hang)
    assert stuck.wait(QUIET_S)
    tiering.tier._timeout_s = 0.1
    if loads:
        assert tiering.load(keys) == []
    else:
        tiering.store(chunks(KEYS, first=20))
    assert tiering.metrics()["degraded"] == 1
    assert tiering.load(keys) == []
    tiering.reset()
    others = chunks(ROWS, first=100)
    slots = tiering.begin_store(others)
    go_on.set()
    until(tiering, lambda: not tiering.tier._is_off and not tiering.tier._jobs.given_up)
    assert [bytes(tiering.row(slot)) for slot in slots] == [content(key) for key in others]
    tiering.finish()
    tiering.reset()
    if loads:
        assert set(tiering.load(keys)) <= set(keys)
    else:
        assert tiering.load(chunks(KEYS, first=20)) == []


def test_a_chunk_that_was_given_up_is_not_asked_for_again_before_the_disk_lets_go_of_it(start: Start) -> None:
    from vllm.v1.kv_offload.base import LookupResult, ReqContext  # noqa: PLC0415 - takes seconds

    tiering = start(timeout_s=QUIET_S)
    tier, keys = tiering.tier, stored(tiering, 2)
    places = [ROW_BYTES * slot for slot in tier._tier._store.index.pin(keys).tolist()]
    tier._tier._store.index.unpin(keys)
    disk = Unsure.under(tier)
    disk.hangs = True
    tiering.begin_load(keys)
    tier._timeout_s = 0.0
    tiering.finish()
    tier._timeout_s = QUIET_S
    disk.lets = [places[1]]
    until(tiering, lambda: not tier._is_off)
    assert tier._tier.holds(keys[0])
    assert tier.lookup(keys[0], ReqContext("a")) is LookupResult.MISS
    disk.hangs = False
    until(tiering, lambda: not tier._jobs.given_up)
    tiering.reset()
    tiering.store(keys)
    tiering.reset()
    assert tiering.load(keys) == keys


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_is_off_until_it_works(start: Start, number: int) -> None:
    tiering = start()
    keys = stored(tiering)
    disk = Unsure.under(tiering.tier)
    disk.error = OSError(number, os.strerror(number))
    tiering.store(chunks(KEYS, first=20))
    until(tiering, lambda: tiering.tier._is_off)
    assert tiering.load(keys) == []
    tiering.store(chunks(KEYS, first=40))
    assert tiering.metrics()["degraded"] == 1
    disk.error = None
    until(tiering, lambda: not tiering.tier._is_off)
    tiering.reset()
    assert tiering.load(keys) == keys


def test_a_folder_that_is_deleted(start: Start, tmp_path: Path) -> None:
    tiering = start()
    keys = stored(tiering)
    (tmp_path / "disk").rename(tmp_path / "elsewhere")
    until(tiering, lambda: tiering.tier._is_off)
    assert tiering.load(keys) == []
    until(tiering, lambda: not tiering.tier._is_off)  # in a new folder
    tiering.reset()
    tiering.store(keys)
    tiering.reset()
    assert tiering.load(keys) == keys


def test_what_nobody_thought_of_ends_the_tier_and_not_the_engine(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiering = start()
    keys = stored(tiering)
    request = tiering.begin_load(keys)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(tiering.tier._tier, "poll", fail)
    tiering.finish()
    assert set(tiering.lookup(keys, request)) == set(tiering.lookup(chunks(1, first=99), request))
    tiering.store(chunks(KEYS, first=20))
    tiering.reset()
    assert tiering.metrics()["degraded"] == 1


def test_a_reset_waits_for_what_is_under_way_and_not_for_a_disk_that_hangs(start: Start) -> None:
    tiering = start(timeout_s=QUIET_S)
    keys = stored(tiering)
    tiering.begin_load(keys)
    tiering.reset()
    disk = Unsure.under(tiering.tier)
    disk.hangs = True
    tiering.tier._timeout_s = 0.2
    tiering.begin_load(keys)
    tiering.reset()
    assert not tiering.manager.has_pending_work()
    disk.hangs = False
