"""Which blocks leave and which a promise keeps, against a plain model that takes one after another."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction_kernels import Storer

TICK = 100
TENANTS = 3


@dataclass(frozen=True)
class Slot:
    promise: int
    until: int
    tenant: int
    was_kept: bool

    @property
    def is_promised(self) -> bool:
        return self.promise >= kernels.NORMAL and self.until > TICK


SLOTS = st.lists(
    st.builds(Slot, st.integers(0, 3), st.integers(95, 110), st.integers(0, TENANTS - 1), st.booleans()),
    max_size=40,
)


@dataclass
class Model:
    """Slots in the order in which they should leave; a slot's number is its depth, too."""

    slots: list[Slot]
    beyond_most: list[int]
    beyond_guaranteed: list[int]
    storer: int
    room: int
    kept: set[int] = field(default_factory=set)
    left: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)

    def leave(self) -> bool:
        """Let one more leave; returns whether there was any."""
        for may_give in (
            lambda tenant: self.beyond_most[tenant] > 0,
            lambda tenant: self.beyond_guaranteed[tenant] > 0,
            lambda tenant: tenant == self.storer,
        ):
            while True:
                mine = [
                    n for n, slot in enumerate(self.slots) if may_give(slot.tenant) and n not in self.left
                ]
                kept = [n for n in mine if n in self.kept]
                first = next((n for n in mine if n not in self.kept), None)
                if first is not None and not self.slots[first].is_promised:
                    self._leaves(first)
                    return True
                if first is not None:
                    self.kept.add(first)
                    self.passed.append(first)
                    if self.room > 0:
                        self.room -= 1
                        continue
                    self._leaves(self._weakest([*kept, first]))
                    return True
                if not kept:
                    break
                self._leaves(self._weakest(kept))
                self.room += 1
                return True
        return False

    def _weakest(self, numbers: list[int]) -> int:
        return min(numbers, key=lambda n: (self.slots[n].promise, -self.slots[n].until, -n))

    def _leaves(self, number: int) -> None:
        self.kept.discard(number)
        self.left.append(number)
        self.beyond_most[self.slots[number].tenant] -= 1
        self.beyond_guaranteed[self.slots[number].tenant] -= 1


@settings(max_examples=400, deadline=None)
@given(
    slots=SLOTS,
    spare=st.integers(-2, 10),
    wanted=st.integers(0, 45),
    incoming=st.integers(0, 5),
    storer=st.integers(0, TENANTS - 1),
    guaranteed=st.lists(st.integers(0, 20), min_size=TENANTS, max_size=TENANTS),
    most=st.lists(st.integers(0, 40), min_size=TENANTS, max_size=TENANTS),
)
def test_what_leaves_and_what_is_kept_is_what_taking_one_by_one_gives(  # noqa: PLR0913, PLR0917 - one tier
    slots: list[Slot],
    spare: int,
    wanted: int,
    incoming: int,
    storer: int,
    guaranteed: list[int],
    most: list[int],
) -> None:
    rows = np.zeros((len(slots), kernels.SLOT_COLUMNS), np.uint32)
    for number, slot in enumerate(slots):
        rows[number, kernels.SPAN] = slot.tenant << kernels.TENANT_SHIFT | number << kernels.DEPTH_SHIFT
        rows[number, kernels.HINT] = slot.until << kernels.UNTIL_SHIFT | slot.promise
    was_kept = {n for n, slot in enumerate(slots) if slot.was_kept and slot.promise >= kernels.NORMAL}
    for number in was_kept:
        rows[number, kernels.HINT] |= kernels.KEPT
    every = np.arange(len(slots), dtype=np.int32)
    over = sum(not slots[n].is_promised for n in was_kept)
    assert kernels.end_kept(rows, every, TICK) == over
    kept = {n for n in was_kept if slots[n].is_promised}
    held = [sum(slot.tenant == tenant for slot in slots) for tenant in range(TENANTS)]
    shares = np.array([held, guaranteed, most], np.int64)
    model = Model(
        slots,
        [held[n] - most[n] + incoming * (n == storer) for n in range(TENANTS)],
        [held[n] - guaranteed[n] + incoming * (n == storer) for n in range(TENANTS)],
        storer,
        spare,
        set(kept),
    )
    before = []
    while len(model.left) < wanted and model.leave():
        before.append(len(model.passed))

    left, passed, passed_before = kernels.choose(
        rows, shares, every, Storer(has_tenants=True, tenant=storer, incoming=incoming), TICK, spare, wanted
    )

    assert (left.tolist(), passed.tolist(), passed_before.tolist()) == (model.left, model.passed, before)
    added, broken = kernels.keep(rows, passed, left, every[:0], TICK)
    assert added == len(set(model.passed) - kept)
    assert broken == sum(slots[n].is_promised for n in model.left)
    gone = kernels.let_go(rows, shares, left)
    assert len(kept) + added - gone == len(model.kept)
    assert {int(n) for n in np.flatnonzero(rows[:, kernels.HINT] & kernels.KEPT)} == model.kept
    assert len(model.kept) - len(kept) <= max(spare, 0)
