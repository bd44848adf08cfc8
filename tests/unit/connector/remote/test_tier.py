"""The remote tier on real servers: what one engine writes another reads, and what goes wrong is a miss."""

import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.shared.stores import Store, running
from tests.shared.waiting import eventually
from tests.unit.connector.remote.tier_engine import BLOCK_BYTES, KEYS, LONG_S, SLOTS, engines, layout_of

from kvtier_connector.core.behind.break_even import TokenSpan
from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.remote.seals import read_mac_key
from kvtier_connector.core.remote.store import Value
from kvtier_connector.core.remote.values import BlockLayout, piece_sizes
from kvtier_connector.errors import SettingError

MAC_KEY, STRANGERS_KEY = b"the key of this share", b"the key of a stranger"

FASTEST = 1e12  # bytes a second that are believed


def test_one_engine_reads_what_another_has_written(store: Store) -> None:
    with engines(store, "m", "m", "other") as [first, second, other]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(SLOTS))
        assert sorted(first.seen.stored) == KEYS == sorted(first.seen.released)
        sent_bytes = first.tier.take_counts().store_bytes
        assert sent_bytes == SLOTS * BLOCK_BYTES

        assert second.ask(range(SLOTS)) == [Presence.PRESENT] * SLOTS
        second.read(range(SLOTS))
        assert sorted(second.seen.loaded) == KEYS
        assert all(second.has(slot) for slot in range(SLOTS))
        second.write(range(SLOTS))
        assert second.tier.take_counts().store_bytes == 0, "what is there is not sent again"

        assert other.ask(range(SLOTS)) == [Presence.ABSENT] * SLOTS
    with engines(store, "m", share="others") as [stranger]:
        assert stranger.ask([0]) == [Presence.ABSENT]


def test_what_is_damaged_exchanged_or_gone_is_lost_alone(store: Store) -> None:
    with engines(store, "m", "m") as [first, second]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(SLOTS))
        layout = layout_of()
        second.ask(range(SLOTS))
        store.ask("SETRANGE", layout.key(KEYS[0], 1), "100", "damaged")
        store.ask("RENAME", layout.key(KEYS[1]), layout.key(KEYS[2]))
        store.ask("DEL", layout.key(KEYS[3], 1))
        second.read(range(SLOTS))
        assert sorted(second.seen.lost) == KEYS[:4]
        assert sorted(second.seen.loaded) == KEYS[4:]
        counts = second.tier.take_counts()
        assert (counts.corrupt, counts.vanished, counts.failed) == (2, 2, 0)
        assert store.ask("EXISTS", layout.key(KEYS[0])) == 0, "what is damaged is removed"
        assert second.ask([0, 1, 2, 3]) == [Presence.ABSENT] * 4


def forge(store: Store, forger: BlockLayout, victim: BlockLayout, slot: int) -> None:
    """Put a block of one's own where another's are, sealed as well as one can."""
    memory = memoryview(bytearray(BLOCK_BYTES))
    with closing(store.connect()) as connection:
        sealed = forger.values(KEYS[slot], [memory])
        forger.seal(KEYS[slot], sealed)
        for piece, value in enumerate(sealed):
            connection.put(Value(victim.key(KEYS[slot], piece), value.memory), 0, LONG_S)


def test_without_a_key_who_may_write_makes_values_that_fit(store: Store) -> None:
    """So it is documented; were it otherwise, the next test would show nothing."""
    with engines(store, "m") as [engine]:
        forge(store, layout_of(), layout_of(), 0)
        engine.ask([0])
        engine.read([0])
        assert engine.seen.loaded == KEYS[:1]


@pytest.mark.parametrize("forger", [layout_of(), layout_of(mac_key=STRANGERS_KEY)], ids=["none", "other"])
def test_what_was_written_without_the_key_is_a_miss_and_removed(store: Store, forger: BlockLayout) -> None:
    keyed = layout_of(mac_key=MAC_KEY)
    with engines(store, "m", "m", mac_key=MAC_KEY) as [first, second]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(SLOTS))
        with engines(store, "m", share="others", mac_key=MAC_KEY) as [stranger]:
            stranger.write([3])
        second.ask(range(SLOTS))
        forge(store, forger, keyed, 0)
        store.ask("SETRANGE", keyed.key(KEYS[1], 1), "100", "altered")
        store.ask("RENAME", keyed.key(KEYS[2]), keyed.key(KEYS[4]))
        store.ask("RENAME", layout_of(share="others", mac_key=MAC_KEY).key(KEYS[3]), keyed.key(KEYS[3]))
        second.read(range(SLOTS))
        assert sorted(second.seen.lost) == KEYS[:5]
        assert sorted(second.seen.loaded) == KEYS[5:]
        assert all(second.has(slot) for slot in range(5, SLOTS))
        counts = second.tier.take_counts()
        assert (counts.corrupt, counts.vanished) == (4, 1)
        assert [store.ask("EXISTS", keyed.key(KEYS[slot])) for slot in (0, 1, 3, 4)] == [0] * 4


def test_with_another_key_an_engine_begins_anew_and_leaves_what_others_have(store: Store) -> None:
    with engines(store, "m", mac_key=MAC_KEY) as [before]:
        before.fill(0)
        before.write([0])
        with engines(store, "m", mac_key=STRANGERS_KEY) as [turned], engines(store, "m") as [unkeyed]:
            for engine in (turned, unkeyed):
                assert engine.ask([0]) == [Presence.ABSENT]
                engine.write([0])
                assert engine.ask([0]) == [Presence.PRESENT]
        before.fill(0)
        before.read([0])
        assert before.seen.loaded == KEYS[:1]
    with engines(store, "m", mac_key=MAC_KEY) as [back]:
        assert back.ask([0]) == [Presence.PRESENT]


def test_a_key_is_read_from_a_file_and_a_short_one_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(
        SettingError, match=r"^kv_connector_extra_config\.remote_mac_key_path: .*No such file"
    ):
        read_mac_key(str(file))
    file.write_bytes(b"fifteen letters\n")
    with pytest.raises(SettingError, match=r"remote_mac_key_path: .*: the key has 15 bytes, must have 16 or"):
        read_mac_key(str(file))
    file.write_bytes(MAC_KEY + b"\n")
    assert read_mac_key(str(file)) == MAC_KEY


def test_a_server_that_dies_fails_what_waits_and_is_used_again(program: str, tmp_path: Path) -> None:
    with running(program, tmp_path / "one") as store, engines(store, "m") as [engine]:
        engine.fill(0)
        engine.write([0])
        store.process.send(signal.SIGKILL)
        engine.read([0])
        engine.wait(until_up=False)
        assert engine.seen.lost == [KEYS[0]]
        assert engine.ask([0]) == [Presence.ABSENT]
        assert engine.tier.lacking(KEYS) == []
        with running(program, tmp_path / "two", port=store.address.port):
            engine.wait()
            for slot in range(SLOTS):  # by each connection, none of which is from before
                engine.write([slot])
                assert engine.ask([slot]) == [Presence.PRESENT]
    reasons = [note for note in engine.seen.notes if "off" in note]
    assert len(reasons) == len(set(reasons)), "not one for each thread"


def test_a_stopped_server_costs_a_deadline(own_store: Store) -> None:
    with engines(own_store, "m") as [engine]:
        for slot in range(SLOTS):
            engine.fill(slot)
        engine.write(range(SLOTS))
        for slot in range(SLOTS):
            engine.memory[slot * BLOCK_BYTES] ^= 0xFF
        before = bytes(engine.memory)
        with own_store.stopped():
            engine.read(range(SLOTS))
            assert sorted(engine.seen.lost) == KEYS
            engine.wait(until_up=False)
        engine.wait()
        assert bytes(engine.memory) == before, "nothing is written late"


def test_a_server_that_became_a_replica_is_down_once_nothing_can_be_written(own_store: Store) -> None:
    with engines(own_store, "m") as [engine]:
        own_store.ask("REPLICAOF", "127.0.0.1", "1")
        while not any("is off" in note and "READONLY" in note for note in engine.seen.notes):
            engine.write([0])


def test_a_full_server_is_given_nothing_for_a_while(own_store: Store) -> None:
    own_store.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    with engines(own_store, "m") as [engine]:
        engine.learn_bandwidth()  # with a value that is written for it
        own_store.ask("CONFIG", "SET", "maxmemory", "8mb")
        for slot in range(SLOTS):
            engine.fill(slot)
        engine.write(range(SLOTS))
        assert sorted(engine.seen.released) == KEYS
        assert len(engine.seen.stored) < SLOTS
        assert engine.tier.lacking(KEYS) == []
        assert not engine.tier.is_down
    assert [note for note in engine.seen.notes if "takes no more" in note]


def test_after_a_reset_nothing_is_read_or_written(store: Store) -> None:
    with engines(store, "m") as [engine]:
        engine.fill(0)
        engine.write([0])
        engine.tier.clear()
        assert engine.ask([0]) == [Presence.ABSENT]
        assert engine.tier.lacking(KEYS) == []
        assert engine.tier.is_down


def test_how_fast_store_and_engine_are_is_learnt_and_kept_for_others(store: Store) -> None:
    with engines(store, "m", connections=3) as [engine]:
        engine.learn_bandwidth()
        assert engine.tier.break_even.read.size_bytes >= BLOCK_BYTES
        engine.tier.break_even.prefill.add(TokenSpan.of(0, 1000), 0.5)
        engine.tier.learn(LONG_S * 2e6, is_in_use=True)
        rates_key = layout_of().rates_key
        eventually(lambda: store.ask("EXISTS", rates_key) == 1, "the pace is kept", LONG_S)
    # from where that engine runs; here it may be anything
    store.ask("SET", rates_key, replace(engine.tier.break_even.rates, read_bytes_per_s=FASTEST).text())
    with engines(store, "m") as [another]:
        assert another.tier.break_even.prefill.pace == engine.tier.break_even.prefill.pace
        another.learn_bandwidth()
        assert (another.tier.break_even.read.per_second or 0) < FASTEST


@pytest.mark.parametrize("size_bytes", [1, 4096, 1 << 20, (1 << 20) + 1, 4 << 20, 9 << 20, 20 << 20])
def test_pieces_leave_little_of_what_a_server_allocates(size_bytes: int) -> None:
    pieces = piece_sizes(size_bytes)
    assert sum(pieces) == size_bytes
    allocated = sum(_allocated_bytes(piece + 32 + 20) for piece in pieces)
    assert allocated <= max(1.03 * size_bytes, 1.26 * size_bytes if size_bytes < 1 << 18 else 0, 64)


def _allocated_bytes(size_bytes: int) -> int:
    """By jemalloc's size classes: four between two powers of two."""
    step = max(16, (1 << ((size_bytes - 1).bit_length() - 1)) // 4)
    return -(-size_bytes // step) * step
