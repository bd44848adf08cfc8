"""A shared store keeps what engines used last, and a new engine has that in memory before it serves."""

import time

import pytest
from tests.shared.stores import Store
from tests.unit.connector.remote.tier_engine import (
    BLOCK_BYTES,
    KEYS,
    LONG_S,
    SLOTS,
    Engine,
    engines,
    layout_of,
)

from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.warm_start import Warmed, WarmStart
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.core.remote.values import BlockLayout

MAC_KEY = b"the key of this share"


def warm(engine: Engine, memory: BlockIndex, most: int) -> Warmed:
    def poll() -> None:
        progress = engine.tier.poll() or Progress()
        memory.invalidate(progress.lost)
        memory.commit(progress.loaded + progress.ended)

    until_s = time.monotonic() + LONG_S
    start = WarmStart(memory, most=most, until_s=until_s, poll=poll, grow=lambda: False)
    return start.load(engine.tier, lambda: True)


def test_a_new_engine_has_in_memory_what_another_used_last(store: Store) -> None:
    with engines(store, "m") as [first]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(6))
        first.tier.keep_newest([KEYS[7], KEYS[5], *KEYS[5::-1]])  # 7 was never written
    with engines(store, "m") as [second]:
        memory = BlockIndex(SLOTS, len(KEYS[0]))
        warmed = warm(second, memory, 4)
        assert (warmed.blocks, warmed.size_bytes) == (4, 4 * BLOCK_BYTES)
        ready = [key for key in KEYS if memory.state(key) is BlockState.READY]
        assert ready == KEYS[2:6]
        slots = memory.hold(ready).tolist()
        assert all(second.has(slot, KEYS.index(key)) for key, slot in zip(ready, slots, strict=True))


def test_what_was_used_last_is_kept_as_late_as_at_an_engines_end(store: Store) -> None:
    for last in (KEYS[:2], KEYS[3:5]):
        with engines(store, "m") as [engine]:
            engine.tier.keep_newest(KEYS[5:6])
            engine.tier.keep_newest(last)
    with engines(store, "m", "other") as [same, other]:
        assert same.tier.newest(99) == tuple(KEYS[3:5])
        assert same.tier.newest(1) == (KEYS[3],)
        assert other.tier.newest(99) == ()


def test_keys_of_another_length_are_passed_over(store: Store) -> None:
    with engines(store, "m") as [engine]:
        engine.tier.keep_newest([b"short", b"stout"])
    with engines(store, "m") as [engine]:
        assert engine.tier.newest(99) == (b"short", b"stout")
        assert warm(engine, BlockIndex(SLOTS, len(KEYS[0])), 4).blocks == 0


@pytest.mark.parametrize("forger", [layout_of(), layout_of(mac_key=b"the key of a stranger")])
def test_a_list_that_is_damaged_or_forged_is_none(store: Store, forger: BlockLayout) -> None:
    with engines(store, "m", mac_key=MAC_KEY) as [engine]:
        engine.tier.keep_newest(KEYS)
    key = layout_of(mac_key=MAC_KEY).newest(32).key
    store.ask("SETRANGE", key, "50", "damaged")
    with engines(store, "m", mac_key=MAC_KEY) as [engine]:
        assert engine.tier.newest(99) == ()
    value = forger.seal_newest(KEYS)
    store.ask("SET", key, b"".join(map(bytes, value.memory)))
    with engines(store, "m", mac_key=MAC_KEY) as [engine]:
        assert engine.tier.newest(99) == ()
