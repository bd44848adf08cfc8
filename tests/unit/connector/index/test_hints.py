"""Hints and tenants' parts in the index, against a plain model of whose blocks are and what they may lose."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvtier_common.hints import Priority
from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.hints import BlockHint, Sharing, TenantPart
from kvtier_connector.core.index.index import BlockIndex, BlockState

KEY_BYTES = 8
UNIVERSE = [number.to_bytes(KEY_BYTES, "big") for number in range(32)]
BATCHES = st.lists(st.sampled_from(UNIVERSE), min_size=1, max_size=12, unique=True)
NAMES = ("", "a", "b", "stranger")
LOW, HIGH = Priority.LOW, Priority.HIGH


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def hints(now_s: float) -> st.SearchStrategy[BlockHint | None]:
    ends = st.one_of(st.just(0.0), st.floats(now_s - 100, now_s + 1e6))
    return st.none() | st.builds(BlockHint, ends, st.sampled_from(Priority), st.sampled_from(NAMES))


class HintedMachine(RuleBasedStateMachine):
    @initialize(
        capacity=st.integers(1, 24),
        share=st.sampled_from((0.0, 0.3, 0.5, 1.0)),
        first=st.floats(0, 0.5),
        second=st.floats(0, 0.5),
        most=st.floats(0, 1),
    )
    def start(self, capacity: int, share: float, first: float, second: float, most: float) -> None:
        self.clock = Clock()
        tenants = {"a": TenantPart(first, max(first, most)), "b": TenantPart(second, 1.0)}
        self.capacity = capacity
        self.index = BlockIndex(capacity, KEY_BYTES, sharing=Sharing(share, tenants), clock=self.clock)
        self.most_kept = int(share * capacity)
        self.guaranteed = Counter({name: int(part.guaranteed * capacity) for name, part in tenants.items()})
        self.owner: dict[bytes, str] = {}
        self.loads: list[list[bytes]] = []

    def _owner_of(self, hint: BlockHint | None) -> str:
        return hint.tenant if hint is not None and hint.tenant in self.guaranteed else ""

    def _ready(self) -> list[bytes]:
        return [key for key in self.owner if self.index.state(key) is BlockState.READY]

    def _use(self, keys: list[bytes], hint: BlockHint | None) -> None:
        for key in keys:
            self.owner[key] = self.owner[key] or self._owner_of(hint)

    @rule(keys=BATCHES, data=st.data())
    def store(self, keys: list[bytes], data: st.DataObject) -> None:
        hint = data.draw(hints(self.clock.now_s))
        storer = self._owner_of(hint)
        lacking = [key for key in keys if key not in self.owner]
        self._use([key for key in keys if key in self.owner], hint)
        before = Counter(self.owner.values())
        leaving = {key: self.owner[key] for key in self.owner}

        got = self.index.reserve(keys, hint=hint)

        for key in got.evicted:
            del self.owner[key]
        after = Counter(self.owner.values())
        for name, least in self.guaranteed.items():
            if name != storer:
                assert after[name] >= min(before[name], least)
        held = {key for load in self.loads for key in load}.union(keys)
        if len(got.keys) < len(lacking):  # what may have left has left
            left = Counter(leaving[key] for key in self.owner if key not in held)
            for name, count in left.items():
                assert name not in ("", storer)
                assert count == 0 or after[name] <= self.guaranteed[name]
        self.owner.update(dict.fromkeys(got.keys, storer))
        self.index.commit(got.keys)

    @rule(keys=BATCHES, data=st.data())
    def touch(self, keys: list[bytes], data: st.DataObject) -> None:
        hint = data.draw(hints(self.clock.now_s))
        self._use([key for key in keys if key in self.owner], hint)
        self.index.touch(keys, hint)

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        hint = data.draw(hints(self.clock.now_s))
        ready = self._ready()
        keys = data.draw(st.permutations(ready))[: data.draw(st.integers(0, len(ready)))]
        self.index.pin(keys, hint)
        self._use(keys, hint)
        self.loads.append(keys)

    @precondition(lambda self: self.loads)
    @rule()
    def unpin(self) -> None:
        self.index.unpin(self.loads.pop())

    @rule(keys=BATCHES)
    def invalidate(self, keys: list[bytes]) -> None:
        held = {key for load in self.loads for key in load}
        gone = [key for key in keys if key not in held]
        self.index.invalidate(gone)
        for key in gone:
            self.owner.pop(key, None)

    @rule(passed_s=st.floats(0, 1e5))
    def wait(self, passed_s: float) -> None:
        self.clock.now_s += passed_s

    @rule()
    def clear(self) -> None:
        self.index.clear()
        self.owner.clear()
        self.loads.clear()

    @precondition(lambda self: not self.owner)
    @rule(count=st.integers(0, 24))
    def restore(self, count: int) -> None:
        keys = UNIVERSE[: min(count, self.capacity)]
        rows = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), KEY_BYTES)
        self.index.restore(rows, np.arange(len(keys), dtype=np.int32))
        self.owner = dict.fromkeys(keys, "")

    @invariant()
    def counts_agree(self) -> None:
        held = Counter(self.owner.values())
        assert self.index.held_by_tenant == {name: held[name] for name in ("", "a", "b")}
        assert {key for name in ("a", "b") for key in self.index.keys_of_tenant(name)} == {
            key for key, name in self.owner.items() if name
        }
        assert set(self.index.keys_of_nobody()) == {key for key, name in self.owner.items() if not name}
        hint = self.index._order._state.slots[:, kernels.HINT]
        promised, kept = hint & np.uint32(kernels.PROMISE_MASK), hint & np.uint32(kernels.KEPT) != 0
        assert self.index.retained == kept.sum() <= self.most_kept
        assert (promised[kept] >= kernels.NORMAL).all()
        free = self.index._state == BlockState.ABSENT
        assert not hint[free].any()


HintedMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30)
TestHintedIndex = HintedMachine.TestCase


def keys(first: int, count: int) -> list[bytes]:
    return [number.to_bytes(KEY_BYTES, "big") for number in range(first, first + count)]


def store(index: BlockIndex, wanted: list[bytes], hint: BlockHint | None = None) -> list[bytes]:
    got = index.reserve(wanted, hint=hint)
    index.commit(got.keys)
    return got.evicted


def there(index: BlockIndex, wanted: list[bytes]) -> int:
    return sum(index.state(key) is BlockState.READY for key in wanted)


def flood(index: BlockIndex, blocks: int, hint: BlockHint | None = None) -> None:
    for first in range(0, blocks, 10):
        store(index, keys(1_000_000 + first, 10), hint)


def hinted(clock: Clock, retain_s: float, priority: Priority = Priority.NORMAL) -> BlockHint:
    return BlockHint(clock.now_s + retain_s, priority)


@pytest.mark.parametrize("priority", [Priority.NORMAL, HIGH])
def test_a_retained_prompt_survives_a_flood_until_its_time_is_over(priority: Priority) -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, clock=clock)
    kept, other = keys(0, 20), keys(100, 20)
    store(index, kept, hinted(clock, 100, priority))
    store(index, other)
    for _ in range(100):
        flood(index, 100)
        clock.now_s += 0.99
        # with less and less time left, a use within it is worth more than what comes once
        if priority is HIGH:
            assert there(index, kept) == 20
    assert there(index, other) == 0
    clock.now_s += 2
    flood(index, 300)
    assert there(index, kept) == 0


def test_of_prompts_that_are_kept_those_stay_that_come_back_soonest() -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, sharing=Sharing(0.5), clock=clock)
    for number, retain_s in enumerate((300, 1000, 100, 200)):
        store(index, keys(25 * number, 25), hinted(clock, retain_s))
    flood(index, 50)
    assert [there(index, keys(25 * number, 25)) for number in range(4)] == [0, 0, 25, 25]
    assert (index.retained, index.not_granted) == (50, 50)


def test_a_prompt_of_low_priority_leaves_first_until_another_request_uses_it() -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, clock=clock)
    store(index, keys(0, 50))
    store(index, keys(50, 25), BlockHint(priority=LOW))
    store(index, keys(75, 25), BlockHint(priority=LOW))
    index.touch(keys(50, 25), BlockHint(priority=LOW))
    index.touch(keys(75, 25))
    store(index, keys(200, 30))
    assert (there(index, keys(0, 50)), there(index, keys(50, 25))) == (45, 0)


def test_low_priority_takes_back_what_was_promised_and_no_more() -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, clock=clock)
    store(index, keys(0, 20), hinted(clock, 100))
    flood(index, 100)
    index.touch(keys(0, 20), BlockHint(priority=LOW))
    assert index.retained == 0
    flood(index, 80)
    assert there(index, keys(0, 20)) == 20  # as recent as what was used with it
    flood(index, 200)
    assert there(index, keys(0, 20)) == 0


def test_what_would_stay_anyway_takes_nothing_of_what_hints_may_keep() -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, sharing=Sharing(0.3), clock=clock)
    store(index, keys(0, 30), hinted(clock, 100))
    store(index, keys(30, 70), hinted(clock, 200, HIGH))
    assert (index.retained, index.not_granted) == (0, 0)
    flood(index, 20)  # the first would leave, and are kept; of the others 20 would, and have no room
    assert (index.retained, index.not_granted) == (30, 20)
    assert there(index, keys(0, 30)) == 10  # high priority stays before what comes back sooner


def test_what_is_used_again_is_kept_no_more_and_may_be_again() -> None:
    clock = Clock()
    index = BlockIndex(100, KEY_BYTES, clock=clock)
    store(index, keys(0, 20), hinted(clock, 100))
    flood(index, 100)
    assert index.retained == 20
    index.touch(keys(0, 5))
    index.unpin_slots(index.pin(keys(5, 5)))
    store(index, keys(10, 5))
    index.invalidate(keys(15, 5))
    assert index.retained == 0
    flood(index, 150)
    assert (index.retained, there(index, keys(0, 20))) == (15, 15)


def test_a_later_shorter_hint_does_not_shorten_what_was_promised() -> None:
    clock = Clock()
    index = BlockIndex(50, KEY_BYTES, clock=clock)
    store(index, keys(0, 3), hinted(clock, 1000, HIGH))
    index.touch(keys(0, 3), hinted(clock, 10))
    clock.now_s += 500
    flood(index, 500)
    assert there(index, keys(0, 3)) == 3


def test_promises_that_are_over_are_swept() -> None:
    clock = Clock()
    index = BlockIndex(50, KEY_BYTES, clock=clock)
    store(index, keys(0, 15), hinted(clock, 5))
    flood(index, 50)
    index.sweep()
    assert (index.retained, there(index, keys(0, 15))) == (15, 15)
    clock.now_s += 6
    index.sweep()
    assert index.retained == 0
    flood(index, 20)
    assert (there(index, keys(0, 15)), index.not_granted) == (0, 0)


def test_a_promise_that_is_over_makes_room_for_others_at_the_next_store() -> None:
    clock = Clock()
    index = BlockIndex(50, KEY_BYTES, clock=clock)
    store(index, keys(0, 15), hinted(clock, 5))
    store(index, keys(20, 15), hinted(clock, 500))
    flood(index, 20)
    clock.now_s += 6
    flood(index, 50)
    assert (index.retained, there(index, keys(20, 15)), index.not_granted) == (15, 15, 0)


def test_what_the_caller_wants_to_stay_counts_as_nothing_that_hints_keep() -> None:
    clock = Clock()
    index = BlockIndex(50, KEY_BYTES, sharing=Sharing(0.2), clock=clock)
    own = keys(0, 30)
    store(index, own, hinted(clock, 5))
    flood(index, 20)
    got = index.reserve(keys(100, 10), keep=set(own).__contains__)
    assert (there(index, own), len(got.evicted), index.not_granted) == (30, 10, 0)
    assert index.retained <= 10


def test_with_nothing_else_to_evict_retained_blocks_leave() -> None:
    clock = Clock()
    index = BlockIndex(10, KEY_BYTES, sharing=Sharing(1), clock=clock)
    store(index, keys(0, 10), hinted(clock, 1000, HIGH))
    assert len(store(index, keys(20, 10))) == 10


@pytest.mark.parametrize("most", [0.3, 0.02])
def test_who_is_above_its_most_part_loses_its_own_blocks_and_has_free_ones_meanwhile(most: float) -> None:
    index = BlockIndex(10_000, KEY_BYTES, sharing=Sharing(tenants={"a": TenantPart(0, most)}))
    tenant = BlockHint(tenant="a")
    flood(index, 5000, tenant)
    assert index.held_by_tenant["a"] == 5000
    for first in range(0, 12_000, 100):
        store(index, keys(first, 100))
    assert index.held_by_tenant["a"] <= 10_000 * most
    for first in range(0, 30_000, 100):
        store(index, keys(5_000_000 + first, 100), tenant)
    assert index.held_by_tenant["a"] <= 10_000 * most


def test_a_flood_leaves_anothers_guaranteed_part_and_takes_what_is_beyond_it() -> None:
    index = BlockIndex(1000, KEY_BYTES, sharing=Sharing(tenants={"a": TenantPart(0.3), "b": TenantPart(0.2)}))
    store(index, keys(0, 300), BlockHint(tenant="a"))
    store(index, keys(300, 500), BlockHint(tenant="b"))
    flood(index, 20_000)
    assert index.held_by_tenant == {"": 500, "a": 300, "b": 200}
    flood(index, 20_000, BlockHint(tenant="b"))
    assert there(index, keys(0, 300)) == 300


def test_who_has_less_than_its_guaranteed_part_gets_it_from_promises_too() -> None:
    clock = Clock()
    tenants = {"a": TenantPart(0.5), "b": TenantPart(0.5)}
    index = BlockIndex(100, KEY_BYTES, sharing=Sharing(1, tenants), clock=clock)
    store(index, keys(0, 50), BlockHint(tenant="b"))
    store(index, keys(50, 50), hinted(clock, 1000, HIGH))
    store(index, keys(100, 50), BlockHint(tenant="a"))
    assert index.held_by_tenant == {"": 0, "a": 50, "b": 50}


def test_parts_are_of_the_slots_that_are_there() -> None:
    index = BlockIndex(100, KEY_BYTES, sharing=Sharing(tenants={"a": TenantPart(0.5), "b": TenantPart(0.5)}))
    index.withhold(np.arange(20, 100, dtype=np.int32))
    store(index, keys(0, 20), BlockHint(tenant="a"))
    store(index, keys(100, 10), BlockHint(tenant="b"))
    assert index.held_by_tenant == {"": 0, "a": 10, "b": 10}
    index.give_back(range(20, 100))
    store(index, keys(200, 80), BlockHint(tenant="a"))
    assert index.held_by_tenant["a"] == 90


def hits(index: BlockIndex, prompt: list[bytes], hint: BlockHint | None) -> int:
    """Use a prompt as an engine does: load what is there of its beginning, store the rest, touch it all."""
    found = next(
        (place for place, key in enumerate(prompt) if index.state(key) is not BlockState.READY), None
    )
    loaded = prompt[:found]
    index.pin(loaded, hint)
    index.unpin(loaded)
    own = set(prompt)
    index.commit(index.reserve(prompt[len(loaded) :], keep=own.__contains__, hint=hint).keys)
    index.touch(prompt, hint)
    return len(loaded)


def plain_hits(index: BlockIndex, clock: Clock, seed: int, *, with_hinted: bool) -> float:
    """Return the hit rate of requests without hints, among others that say the worst that they can."""
    chance = np.random.default_rng(seed)
    conversations = [keys(1000 * number, 30) for number in range(100)]
    found = asked = 0
    for step in range(3000):
        clock.now_s += 0.1
        if step % 3:
            prompt = conversations[chance.integers(100)]
            got = hits(index, prompt, None)
            if step > 1000:
                found, asked = found + got, asked + len(prompt)
        elif with_hinted:  # never comes back
            priority = (Priority.NORMAL, HIGH, HIGH, LOW)[chance.integers(4)]
            hint = BlockHint(clock.now_s + float(chance.choice((1, 60, 86_400))), priority)
            hits(index, keys(10_000_000 + 1000 * step, 30), hint)
        else:
            hits(index, keys(10_000_000 + 1000 * step, 30), None)
    return found / asked


@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 1000), share=st.sampled_from((0.2, 0.3, 0.5)))
def test_bad_hints_cost_others_no_more_than_the_share_that_hints_may_hold(seed: int, share: float) -> None:
    capacity = 2000
    clock = Clock()
    hinted_index = BlockIndex(capacity, KEY_BYTES, sharing=Sharing(share), clock=clock)
    smaller = BlockIndex(int(capacity * (1 - share)), KEY_BYTES, clock=Clock())
    with_bad_hints = plain_hits(hinted_index, clock, seed, with_hinted=True)
    alone = plain_hits(smaller, Clock(), seed, with_hinted=False)
    assert with_bad_hints >= alone - 0.02


def learn_nothing(uses: int) -> None:
    del uses


OPINIONS = st.tuples(st.integers(0, 60), st.integers(1, 10), st.sampled_from(Priority), st.integers(0, 40))


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(10, 60),
    share=st.sampled_from((0.0, 0.3, 0.5, 1.0)),
    steps=st.lists(st.tuples(OPINIONS, st.integers(0, 3)), max_size=60),
)
def test_whatever_is_said_what_was_used_last_stays_as_in_a_tier_without_the_part_of_hints(
    capacity: int, share: float, steps: list[tuple[tuple[int, int, Priority, int], int]]
) -> None:
    clock = Clock()
    index = BlockIndex(capacity, KEY_BYTES, sharing=Sharing(share), clock=clock)
    index._order._statistics.advance = learn_nothing  # type: ignore[method-assign] # LRU, as at first
    rest = capacity - int(share * capacity)
    recent: list[bytes] = []  # the last used at the end, of a prompt its root
    for (first, count, priority, retain_s), passed_s in steps:
        clock.now_s += passed_s
        prompt = keys(first, count)
        store(index, prompt, BlockHint(clock.now_s + retain_s if retain_s else 0.0, priority))
        index.touch(prompt)
        recent = [key for key in recent if key not in prompt] + prompt[::-1]
        assert [key for key in recent[::-1][:rest] if index.state(key) is not BlockState.READY] == []
        assert index.retained <= capacity - rest
