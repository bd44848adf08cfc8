"""What is cleared or forgotten in a shared store is found by no engine, whatever is under way."""

from pathlib import Path

import pytest
from tests.shared.stores import Store, running
from tests.unit.connector.remote.tier_engine import KEYS, SLOTS, Engine, engines, layout_of

from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.transfers import RemoteThreads

ABSENT, PRESENT = Presence.ABSENT, Presence.PRESENT


def _written(engine: Engine) -> None:
    for slot in range(SLOTS):
        engine.fill(slot)
    engine.write(range(SLOTS))


def _until_forgotten(engine: Engine) -> str:
    while engine.tier.is_forgetting:
        engine._look()
    return engine.tier.take_forget_error()


def _begin(engine: Engine, epoch: str) -> None:
    progress = Progress()
    engine.tier.begin_anew(epoch, progress)
    engine.seen.lost += progress.lost


def test_a_new_epoch_finds_nothing_of_before_and_is_the_next_starts_too(store: Store) -> None:
    with engines(store, "m", "m") as [first, late]:
        _written(first)
        _begin(first, "e1")
        assert _until_forgotten(first) == ""
        assert first.ask(range(SLOTS)) == [ABSENT] * SLOTS
        assert late.ask([0]) == [PRESENT], "it has not been told"
        first.write([1])
        assert first.ask([0, 1]) == [ABSENT, PRESENT]
    with engines(store, "m", "other") as [started, other]:
        assert started.ask([0, 1]) == [ABSENT, PRESENT]
        _written(other)
        assert store.ask("EXISTS", layout_of("other").of_epoch("e1").key(KEYS[0])) == 1


def test_engines_that_are_told_of_one_epoch_go_on_sharing(store: Store) -> None:
    with engines(store, "m", "m") as [first, second]:
        _written(first)
        for engine in (first, second):
            _begin(engine, "e1")
            assert _until_forgotten(engine) == ""
        assert second.ask([3]) == [ABSENT]
        first.write([2])
        assert second.ask([2]) == [PRESENT]


def test_transfers_under_way_bring_nothing_of_before_into_a_new_epoch(store: Store) -> None:
    with engines(store, "m") as [engine]:
        _written(engine)
        engine.ask(range(SLOTS))
        engine.begin_to_read(range(SLOTS))
        _begin(engine, "e1")
        engine.settle()
        assert sorted(engine.seen.lost) == KEYS
        assert engine.seen.loaded == []
        assert _until_forgotten(engine) == ""
        engine.begin_to_write(range(SLOTS))
        _begin(engine, "e2")
        engine.settle()
        assert _until_forgotten(engine) == ""
        assert engine.ask(range(SLOTS)) == [ABSENT] * SLOTS
        layout = layout_of().of_epoch("e2")
        assert [store.ask("EXISTS", layout.key(key)) for key in KEYS] == [0] * SLOTS


def test_forgotten_blocks_are_gone_for_all_and_the_others_are_not(store: Store) -> None:
    with engines(store, "m", "m") as [first, second]:
        _written(first)
        second.ask(range(SLOTS))
        first.tier.forget([KEYS[0], KEYS[3]], Progress())
        assert first.tier.presence(KEYS[0]) is ABSENT, "at once"
        assert _until_forgotten(first) == ""
        assert first.ask(range(SLOTS)) == [ABSENT, PRESENT, PRESENT, ABSENT] + [PRESENT] * (SLOTS - 4)
        second.read([0])
        assert second.seen.lost == [KEYS[0]]
        assert [store.ask("EXISTS", layout_of().key(KEYS[3], piece)) for piece in range(2)] == [0, 0]


def test_what_is_being_written_when_it_is_forgotten_is_gone_too(store: Store) -> None:
    with engines(store, "m") as [engine]:
        for slot in range(SLOTS):
            engine.fill(slot)
        engine.begin_to_write(range(SLOTS))
        engine.tier.forget(KEYS[:2], Progress())
        engine.settle()
        assert _until_forgotten(engine) == ""
        assert engine.ask(range(SLOTS)) == [ABSENT] * 2 + [PRESENT] * (SLOTS - 2)


def test_a_store_that_is_away_is_told_when_it_comes_back(
    own_store: Store, program: str, tmp_path: Path
) -> None:
    with engines(own_store, "m") as [engine]:
        _written(engine)
        own_store.process.kill()
        engine.tier.ask([b"what nothing is known of"])
        engine.wait(until_up=False)
        _begin(engine, "e1")
        assert _until_forgotten(engine)
        with running(program, tmp_path, port=own_store.address.port) as again:
            engine.wait()
            assert again.ask("GET", layout_of().epoch_key) == b"e1"


def test_an_epoch_that_the_store_has_lost_is_told_it_again(store: Store) -> None:
    with engines(store, "m") as [engine]:
        _begin(engine, "e1")
        assert _until_forgotten(engine) == ""
        store.ask("DEL", layout_of().epoch_key)
        engine.ask([0])  # any question
        assert store.ask("GET", layout_of().epoch_key) == b"e1"


def test_an_epoch_that_begins_while_an_engine_connects_is_told_to_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engines(store, "m") as [first]:
        _begin(first, "e1")
        assert _until_forgotten(first) == ""
    read_text = RemoteThreads._read_text

    def begun_meanwhile(
        threads: RemoteThreads, connection: StoreConnection, key: bytes, most_bytes: int
    ) -> str:
        found = read_text(threads, connection, key, most_bytes)
        if key == layout_of().epoch_key:
            threads.begin_epoch("e2", 0)
        return found

    monkeypatch.setattr(RemoteThreads, "_read_text", begun_meanwhile)
    with engines(store, "m") as [engine]:
        engine.ask([0])  # what the store is to be told goes before questions
        assert store.ask("GET", layout_of().epoch_key) == b"e2"
