"""Memory for bodies: parts that come in, and a budget that many share."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.errors import BudgetSpentError, RefusedRequestError, TooLargeError
from kvtier_scorer.picker.gateway.body_memory import BodyBudget, BodyBuffer, BodyShare

PARTS = 1 << 18


@given(st.lists(st.sampled_from([b"", b"a", b"bc", bytes(4095), bytes(4096), bytes(5000)]), max_size=8))
def test_the_whole_is_its_parts(parts: list[bytes]) -> None:
    received = BodyBuffer()
    for part in parts:
        received.add(part)
    assert received.take() == b"".join(parts)
    assert received.take() == b""


def test_many_small_parts_take_hardly_more_than_their_bytes() -> None:
    received = BodyBuffer()
    tracemalloc.start()
    for place in range(PARTS):
        received.add(b"%d" % (place % 10))
        received.add(b"")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1.5 * PARTS
    assert len(received.take()) == PARTS


TOTAL = 100
EACH = 40


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> BodyBudget:
    return BodyBudget(TOTAL, EACH, clock)


def losing(budget: BodyBudget, lost: list[BodyShare], size_bytes: int = 0) -> BodyShare:
    share = budget.share()
    share.on_evicted = lambda: lost.append(share)
    share.take(size_bytes)
    return share


def test_what_is_given_back_can_be_had_again(budget: BodyBudget) -> None:
    for _ in range(5):
        shares = [budget.share() for _ in range(3)]
        for share in shares:
            share.take(30)
        assert budget.held_bytes == 90
        for share in shares:
            share.release()
            share.release()
        assert budget.held_bytes == 0


def test_a_body_has_its_own_bound(budget: BodyBudget) -> None:
    share = budget.share()
    share.take(EACH)
    with pytest.raises(TooLargeError, match="larger than 40 bytes"):
        share.take(1)
    with pytest.raises(TooLargeError):
        budget.share().check_announced(EACH + 1)


def test_who_holds_much_for_long_loses_it_to_the_others(budget: BodyBudget, clock: Clock) -> None:
    lost: list[BodyShare] = []
    first = losing(budget, lost, 10)
    clock.now_s = 1
    slow = losing(budget, lost, 40)
    clock.now_s = 2
    losing(budget, lost, 40)
    clock.now_s = 3
    new = budget.share()
    new.take(20)
    assert lost == [slow]
    assert (slow.held_bytes, first.held_bytes, budget.held_bytes) == (0, 10, 70)


def test_a_trickle_does_not_make_a_share_young(budget: BodyBudget, clock: Clock) -> None:
    lost: list[BodyShare] = []
    slow = losing(budget, lost)
    for second in range(30):
        clock.now_s = second
        slow.take(1)
    losing(budget, lost, 40)
    clock.now_s = 31
    losing(budget, lost, 40)
    assert lost == [slow]


def test_who_asks_for_the_most_is_refused(budget: BodyBudget, clock: Clock) -> None:
    lost: list[BodyShare] = []
    asking = losing(budget, lost, 25)
    clock.now_s = 5
    for _ in range(2):
        losing(budget, lost, 35)
    with pytest.raises(BudgetSpentError):
        asking.take(10)
    assert (lost, asking.held_bytes) == ([], 25)


def test_what_is_being_read_cannot_be_lost(budget: BodyBudget, clock: Clock) -> None:
    lost: list[BodyShare] = []
    for _ in range(2):
        losing(budget, lost, EACH).pinned = True
    clock.now_s = 9
    new = budget.share()
    new.check_announced(20)
    with pytest.raises(BudgetSpentError):
        new.check_announced(21)
    with pytest.raises(BudgetSpentError):
        new.take(21)
    assert lost == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, EACH + 1), st.integers(0, 2)), max_size=60))
def test_never_more_than_all_is_held(steps: list[tuple[int, int, int]]) -> None:
    clock = Clock()
    budget = BodyBudget(TOTAL, EACH, clock)
    shares = [budget.share() for _ in range(10)]
    for place, size_bytes, what in steps:
        clock.now_s += 1
        share = shares[place]
        before = share.held_bytes
        try:
            if what == 2:
                share.release()
            else:
                share.take(size_bytes)
        except RefusedRequestError:
            assert share.held_bytes == before
        held = sum(each.held_bytes for each in shares)
        assert held == budget.held_bytes <= TOTAL
