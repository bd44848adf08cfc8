"""The compiled tier beside a plain model of the same rules, and what the rules are for."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.simulate.pools import pod

from kvtier_common.hints import Hints, Priority
from kvtier_scorer.simulate.hinted import Hinted, new_hinted, store_hinted
from kvtier_scorer.simulate.settings import PoolSettings, TenantShare
from kvtier_scorer.simulate.trace import Segment, TraceRequest, build_trace

NAMED = 14
TENANTS = {"a": TenantShare(0.4, 0.6), "b": TenantShare(0.3, 1.0)}
HINTS = st.builds(
    Hints,
    retain_s=st.sampled_from([0.0, 0.0, 1.0, 3.0, 9.0]),
    priority=st.sampled_from(Priority),
    tenant=st.sampled_from(["", "a", "b"]),
)
PROMPTS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True)


@dataclass
class Block:
    """What the model knows of a block."""

    used: int
    tenant: str
    low: bool
    promise: Hints | None = None
    until_s: float = -1.0
    kept: bool = False


@dataclass
class Model:
    """The rules in order, over a dictionary."""

    capacity: int
    retained: float
    tenants: dict[str, TenantShare] = field(default_factory=dict)
    blocks: dict[int, Block] = field(default_factory=dict)
    clock: int = 0

    def held(self, tenant: str) -> int:
        return sum(block.tenant == tenant for block in self.blocks.values())

    def most(self, tenant: str) -> int:
        return int(self.capacity * self.tenants[tenant].most) if tenant else self.capacity

    def store(self, prompt: list[int], hints: Hints, now_s: float) -> None:
        tenant = hints.tenant if hints.tenant in self.tenants else ""
        prompt = prompt[: self.most(tenant)]
        until_s = now_s + hints.retain_s if hints.retain_s else -1.0
        self.use(prompt, hints, until_s, now_s)
        for name in prompt:
            if name in self.blocks:
                continue
            if len(self.blocks) == self.capacity and not self.evict(tenant, now_s):
                break
            self.clock += 1
            low = hints.priority is Priority.LOW
            self.blocks[name] = Block(self.clock, tenant, low)
            if until_s >= now_s:
                self.blocks[name].promise, self.blocks[name].until_s = hints, until_s
        self.use(prompt, hints, until_s, now_s)

    def use(self, prompt: list[int], hints: Hints, until_s: float, now_s: float) -> None:
        for name in reversed(prompt):
            if (block := self.blocks.get(name)) is None:
                continue
            self.clock += 1
            block.used, block.kept = self.clock, False
            if hints.priority is Priority.LOW:
                block.promise = None
                continue
            block.low = False
            live = block.promise is not None and block.until_s >= now_s
            before = (block.promise.priority, block.until_s) if live and block.promise else (-1, -1.0)
            if until_s >= now_s and (hints.priority, until_s) > before:
                block.promise, block.until_s = hints, until_s

    def evict(self, tenant: str, now_s: float) -> bool:
        """Try the rules in turn."""
        may_leave = [name for name in self.blocks if self.may_leave(self.blocks[name], tenant)]
        taken = self.over_most(tenant)
        if taken is None:
            taken = self.needless(may_leave, now_s)
        if taken is None:
            taken = self.oldest(may_leave, now_s)
        if taken is not None:
            del self.blocks[taken]
        return taken is not None

    def may_leave(self, block: Block, tenant: str) -> bool:
        own = block.tenant
        guaranteed = int(self.capacity * self.tenants[own].guaranteed) if own else 0
        return own == tenant or self.held(own) > guaranteed

    def over_most(self, tenant: str) -> int | None:
        for other in self.tenants:
            if self.most(other) == self.capacity:
                continue
            own = [name for name in self.blocks if self.blocks[name].tenant == other]
            if own and len(own) + (other == tenant) > self.most(other):
                # low ones, then others, then those that are kept
                return min(own, key=lambda n: (self.rung(n), self.blocks[n].used))
        return None

    def rung(self, name: int) -> int:
        block = self.blocks[name]
        return 0 if block.low else 2 if block.kept else 1

    def needless(self, may_leave: list[int], now_s: float) -> int | None:
        over = [n for n in may_leave if self.blocks[n].kept and self.blocks[n].until_s < now_s]
        if over:
            return min(over, key=lambda n: (self.blocks[n].until_s, self.blocks[n].used))
        return min(
            (n for n in may_leave if self.blocks[n].low), key=lambda n: self.blocks[n].used, default=None
        )

    def oldest(self, may_leave: list[int], now_s: float) -> int | None:
        for name in sorted(may_leave, key=lambda name: self.blocks[name].used):
            block = self.blocks[name]
            if block.kept:
                continue
            if block.promise is None or block.until_s < now_s:
                return name
            block.kept = True
            if sum(each.kept for each in self.blocks.values()) > int(self.capacity * self.retained):
                return self.least_kept(may_leave)
        return self.least_kept(may_leave)

    def least_kept(self, allowed: list[int]) -> int | None:
        kept = [name for name in allowed if self.blocks[name].kept]

        def key(name: int) -> tuple[int, float, int]:
            block = self.blocks[name]
            assert block.promise is not None
            return block.promise.priority, -block.until_s, block.used

        return min(kept, key=key, default=None)


def tier_for(said: list[Hints], capacity: int, retained: float, tenants: dict[str, TenantShare]) -> Hinted:
    requests = [TraceRequest("m", (Segment(0, 1),), 1, float(at), hints) for at, hints in enumerate(said)]
    pool = PoolSettings(pods=2, pod=pod(), retained=retained, tenants=tenants)
    return new_hinted(pool, capacity, NAMED, build_trace("t", requests))


def store(tier: Hinted, request: int, prompt: list[int], retain_s: float) -> None:
    if retain_s:
        tier.until_s[request] = request + retain_s
    stored, evicted = np.zeros(16, np.int32), np.zeros(16, np.int32)
    store_hinted(tier, 1, request, float(request), np.array(prompt, np.int32), stored, evicted)


def held_in(tier: Hinted) -> set[int]:
    return {int(name) for name in np.flatnonzero(tier.lru.slot_of[1, :NAMED] >= 0)}


@given(
    st.integers(1, 8), st.sampled_from([0.0, 0.3, 0.6]), st.booleans(),
    st.lists(st.tuples(PROMPTS, HINTS), max_size=25),
)  # fmt: skip
def test_a_tier_decides_as_the_rules_say(
    capacity: int, retained: float, shared: bool, requests: list[tuple[list[int], Hints]]
) -> None:
    tenants = TENANTS if shared else {}
    model = Model(capacity, retained, tenants)
    if not requests:
        return
    tier = tier_for([hints for _, hints in requests], capacity, retained, tenants)
    for number, (prompt, hints) in enumerate(requests):
        store(tier, number, prompt, hints.retain_s)
        model.store(prompt, hints, float(number))
        assert held_in(tier) == set(model.blocks)
        assert tier.kept[1, -1] == sum(block.kept for block in model.blocks.values())


def test_a_promise_outlives_a_flood_until_its_time_is_over_and_keeps_no_more_than_its_part() -> None:
    said = [Hints(retain_s=8.0), *[Hints()] * 10]
    tier = tier_for(said, capacity=8, retained=0.3, tenants={})
    store(tier, 0, [0, 1, 2], 8.0)
    left = []
    for number in range(1, 11):
        store(tier, number, [3 + number], 0.0)
        left.append({0, 1, 2} & held_in(tier))
    # full from the sixth on: of three two may be kept, the tail leaves; behind the eighth nothing is promised
    assert left == [*[{0, 1, 2}] * 5, *[{0, 1}] * 3, {0}, set()]


def test_nobody_finds_less_than_in_a_tier_without_the_part_that_may_be_kept() -> None:
    said = [Hints(retain_s=99.0, priority=Priority.HIGH) if number % 2 else Hints() for number in range(40)]
    tier, rest = tier_for(said, 10, 0.3, {}), tier_for([Hints()] * 40, 7, 0.3, {})
    for number in range(40):
        prompt = [number * 3 % 13, number * 7 % 13] if number % 3 else [number % 13]
        found, least = held_in(tier), held_in(rest)
        assert least <= found
        store(tier, number, list(dict.fromkeys(prompt)), said[number].retain_s)
        store(rest, number, list(dict.fromkeys(prompt)), 0.0)


def test_a_flood_takes_nothing_of_what_is_guaranteed_to_another() -> None:
    said = [Hints(tenant="a"), *[Hints(tenant="b")] * 20]
    tier = tier_for(said, 8, 0.3, {"a": TenantShare(0.5, 1.0), "b": TenantShare(0.0, 1.0)})
    store(tier, 0, [0, 1, 2, 3], 0.0)
    for number in range(1, 20):
        store(tier, number, [4 + number % 6], 0.0)
    assert {0, 1, 2, 3} <= held_in(tier)
