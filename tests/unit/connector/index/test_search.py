"""How far a store searches for what it may take where tenants have parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction import EvictionOrder
from kvtier_connector.core.index.eviction_kernels import RUN, ScanPath, Storer
from kvtier_connector.core.index.hints import BlockHint, Sharing, TenantPart
from kvtier_connector.core.index.index import BlockIndex

CAPACITY = 40_000
RUNS = 100  # looked at
PATH = ScanPath(0, 1, CAPACITY // RUN)
NAMES = ("", "a", "b")


def order_of(held: dict[str, int], tenants: dict[str, TenantPart]) -> EvictionOrder:
    """A full tier in which tenants' slots lie one behind another, all of them evictable."""
    order = EvictionOrder(CAPACITY, Sharing(tenants=tenants))
    order.holds.fill(0)
    slots = np.arange(CAPACITY, dtype=np.int32)
    for name, count in held.items():
        order.holdings.take(slots[:count], BlockHint(tenant=name))
        slots = slots[count:]
    return order


def look(order: EvictionOrder, storer: str, wanted: int) -> tuple[np.ndarray, int]:
    """Return the slots that were found, and how many runs were looked at for them."""
    who = Storer(has_tenants=True, tenant=NAMES.index(storer), incoming=wanted)
    now = order.holdings.moment(0)
    found, _, run = kernels.look_at(order._state, order.holdings.shares, now, PATH, who, RUNS, wanted)
    return found, run


def test_where_nothing_may_leave_nothing_is_looked_at() -> None:
    half = CAPACITY // 2
    order = order_of({"a": half, "b": half}, {"a": TenantPart(0.5), "b": TenantPart(0.5)})
    found, looked_at = look(order, "", 10)
    assert (len(found), looked_at) == (0, 0)


def test_the_search_ends_when_all_that_may_leave_is_found() -> None:
    order = order_of({"": 5, "a": CAPACITY - 5}, {"a": TenantPart(1 - 5 / CAPACITY)})
    assert look(order, "", 10)[1] == RUNS


@settings(max_examples=40, deadline=None)
@given(
    storer=st.sampled_from(NAMES),
    wanted=st.integers(1, RUNS),
    cuts=st.tuples(st.integers(0, CAPACITY), st.integers(0, CAPACITY)).map(sorted),
    guaranteed=st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)),
    most=st.sampled_from((0.0, 0.0001, 0.01, 0.5, 1.0)),
)
def test_the_search_has_an_end_and_weighs_little_more_than_is_looked_at(
    storer: str, wanted: int, cuts: list[int], guaranteed: tuple[float, float], most: float
) -> None:
    first, second = cuts
    held = {"": first, "a": second - first, "b": CAPACITY - second}
    parts = {name: TenantPart(least, max(least, most)) for name, least in zip("ab", guaranteed, strict=True)}
    order = order_of(held, parts)
    found, looked_at = look(order, storer, wanted)
    assert looked_at <= 4 * RUNS < PATH.runs
    assert looked_at >= RUNS or not len(found), "nor does it go round"
    assert len(found) <= RUNS * RUN + 2 * (wanted + RUN)


@pytest.mark.parametrize("rare", [100, 400])
def test_what_is_rare_is_found_by_one_store_or_another(rare: int) -> None:
    index = BlockIndex(CAPACITY, 8, sharing=Sharing(tenants={"a": TenantPart(1 - rare / CAPACITY)}))
    numbers = iter(range(10**9))

    def fresh(count: int) -> list[bytes]:
        return [next(numbers).to_bytes(8, "big") for _ in range(count)]

    for _ in range((CAPACITY - rare) // 100):
        index.commit(index.reserve(fresh(100), hint=BlockHint(tenant="a")).keys)
    first = index.reserve(fresh(rare)).keys
    index.commit(first)
    for _ in range(100):
        index.commit(index.reserve(fresh(20)).keys)
    assert index.held_by_tenant == {"": rare, "a": CAPACITY - rare}
    assert index.lacking(first) == first
