from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.index.prompts import matched_blocks, prompt

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.index.layout import PAGE_BYTES
from kvtier_scorer.index.prefix_index import PrefixIndex

LIMIT_BYTES = 1 << 24
ROOT = prompt((0, 4))
LEFT = prompt((0, 4), (1, 3))
RIGHT = prompt((0, 4), (2, 3))
OTHER = prompt((9, 5))


def test_each_tier_holds_what_fits_of_what_was_sent() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({Tier.GPU: 5, Tier.CPU: 100})
    index.assume_stored(pod, LEFT)
    assert matched_blocks(index, LEFT, pod) == [[5, 7, 0]]
    assert matched_blocks(index, RIGHT, pod) == [[4, 4, 0]]
    assert matched_blocks(index, OTHER, pod) == [[0, 0, 0]]
    assert [index.used_blocks(pod, tier) for tier in OF_A_POD] == [5, 7, 0]
    assert [index.capacity(pod, tier) for tier in OF_A_POD] == [5, 100, 0]


def test_tails_are_evicted_before_roots() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({Tier.GPU: 10})
    index.assume_stored(pod, LEFT)
    index.assume_stored(pod, RIGHT)
    # the root is shared: 4 + 3 + 3
    assert [matched_blocks(index, hashes, pod)[0][0] for hashes in (LEFT, RIGHT)] == [7, 7]
    index.assume_stored(pod, OTHER)
    # the tail of what was used longest ago went first, then that of the other one, and the root stayed
    assert [matched_blocks(index, hashes, pod)[0][0] for hashes in (LEFT, RIGHT, OTHER)] == [4, 5, 5]
    index.assume_stored(pod, LEFT)
    assert [matched_blocks(index, hashes, pod)[0][0] for hashes in (LEFT, RIGHT, OTHER)] == [7, 4, 3]


def test_only_what_is_contiguous_from_the_first_block_counts() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({Tier.GPU: 100})
    index.set_precise(pod, precise=True)
    index.store(pod, Tier.GPU, LEFT[2:], int(LEFT[1]))
    assert (matched_blocks(index, LEFT, pod)[0][0], index.used_blocks(pod, Tier.GPU)) == (0, 5)
    index.store(pod, Tier.GPU, LEFT[:1], None)
    assert matched_blocks(index, LEFT, pod)[0][0] == 1
    index.store(pod, Tier.GPU, LEFT[1:2], int(LEFT[0]))
    assert matched_blocks(index, LEFT, pod)[0][0] == 7
    index.remove(pod, Tier.GPU, LEFT[5:6])
    assert (matched_blocks(index, LEFT, pod)[0][0], index.used_blocks(pod, Tier.GPU)) == (5, 6)
    index.remove(pod, Tier.GPU, LEFT[:1])
    assert (matched_blocks(index, LEFT, pod)[0][0], index.used_blocks(pod, Tier.GPU)) == (0, 5)


def test_a_pods_entries_go_with_it() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    first, second = (index.add_pod({Tier.GPU: 100, Tier.DISK: 100}) for _ in range(2))
    index.assume_stored(first, LEFT)
    index.assume_stored(second, LEFT)
    index.remove_pod(first)
    assert matched_blocks(index, LEFT, first, second) == [[0, 0, 0], [7, 0, 7]]
    assert index.add_pod({Tier.GPU: 100}) == first
    assert matched_blocks(index, LEFT, first) == [[0, 0, 0]]
    assert [index.capacity(first, tier) for tier in OF_A_POD] == [100, 0, 0]


def test_numbers_are_as_few_as_pods_ever_were_at_once() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    assert [index.add_pod({}) for _ in range(5)] == [0, 1, 2, 3, 4]
    for number in (1, 3):
        index.remove_pod(number)
    assert {index.add_pod({}), index.add_pod({})} == {1, 3}
    assert index.add_pod({}) == 5


def test_a_precise_pod_learns_nothing_from_what_is_sent_to_it() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    told, guessed = (index.add_pod({Tier.GPU: 100}) for _ in range(2))
    index.assume_stored(told, OTHER)
    index.set_precise(told, precise=True)
    for pod in (told, guessed):
        index.assume_stored(pod, LEFT)
    assert matched_blocks(index, LEFT, told, guessed) == [[0, 0, 0], [7, 0, 0]]
    # what was guessed before is gone too
    assert matched_blocks(index, OTHER, told) == [[0, 0, 0]]
    index.store(told, Tier.CPU, ROOT, None)
    assert matched_blocks(index, LEFT, told) == [[0, 4, 0]]
    index.set_precise(told, precise=False)
    index.assume_stored(told, LEFT)
    assert matched_blocks(index, LEFT, told) == [[7, 0, 0]]


def test_a_precise_pods_capacity_is_a_hint() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({Tier.GPU: 2})
    index.set_precise(pod, precise=True)
    index.store(pod, Tier.GPU, LEFT, None)
    index.resize(pod, Tier.GPU, 3)
    assert matched_blocks(index, LEFT, pod) == [[7, 0, 0]]
    assert (index.capacity(pod, Tier.GPU), index.dropped_blocks(pod, Tier.GPU)) == (3, 0)
    # approximate again it is the true one
    index.set_precise(pod, precise=False)
    index.assume_stored(pod, LEFT)
    assert matched_blocks(index, LEFT, pod) == [[3, 0, 0]]


NUMBERS = st.lists(st.integers(2**64 - 4, 2**64 - 1) | st.integers(0, 9), max_size=12)


@given(
    steps=st.lists(st.tuples(st.sampled_from(["sent", "stored", "removed"]), NUMBERS), max_size=20),
    capacity=st.integers(0, 8),
)
def test_hashes_that_are_no_chain_do_no_harm(steps: list[tuple[str, list[int]]], capacity: int) -> None:
    index = PrefixIndex(LIMIT_BYTES)
    guessed, told = (index.add_pod({Tier.GPU: capacity}) for _ in range(2))
    index.set_precise(told, precise=True)
    held: set[int] = set()
    for step, numbers in steps:
        hashes = np.array(numbers, np.uint64)
        if step == "sent":
            index.assume_stored(guessed, hashes)
            assert 0 <= matched_blocks(index, hashes, guessed)[0][0] <= len(numbers)
        elif step == "stored":
            index.store(told, Tier.GPU, hashes, 5)
            held |= set(numbers)
        else:
            index.remove(told, Tier.GPU, hashes)
            held -= set(numbers)
        assert index.used_blocks(guessed, Tier.GPU) <= capacity
        assert index.used_blocks(told, Tier.GPU) == len(held)
    for pod in (guessed, told):
        index.remove_pod(pod)
    assert index.nbytes < PAGE_BYTES


Call = Callable[[PrefixIndex], object]
SAYS: list[Call] = [
    lambda index: index.store(0, Tier.GPU, LEFT, None),
    lambda index: index.remove(0, Tier.GPU, LEFT),
    lambda index: index.clear(0, Tier.GPU),
]
OTHER_CALLS: list[Call] = [
    lambda index: index.remove_pod(0),
    lambda index: index.resize(0, Tier.GPU, 1),
    lambda index: index.assume_stored(0, LEFT),
    lambda index: index.assume_stored(-1, LEFT),
    lambda index: index.set_precise(0, precise=True),
    lambda index: index.used_blocks(0, Tier.GPU),
    lambda index: index.capacity(0, Tier.GPU),
    lambda index: index.dropped_blocks(0, Tier.GPU),
]


@pytest.mark.parametrize("call", SAYS + OTHER_CALLS)
def test_pods_that_there_are_not(call: Call) -> None:
    index = PrefixIndex(LIMIT_BYTES)
    index.remove_pod(index.add_pod({Tier.GPU: 5}))
    with pytest.raises(KeyError, match="no pod has the number"):
        call(index)
    assert matched_blocks(index, LEFT, -1, 0, 2**31 - 1) == [[0, 0, 0]] * 3


@pytest.mark.parametrize("call", SAYS)
def test_only_a_precise_pod_says_what_it_holds(call: Call) -> None:
    index = PrefixIndex(LIMIT_BYTES)
    index.add_pod({Tier.GPU: 5})
    with pytest.raises(ValueError, match="pod 0 is approximate"):
        call(index)


@pytest.mark.parametrize("entries", [-1, 2**32])
def test_capacities_that_cannot_be(entries: int) -> None:
    index = PrefixIndex(LIMIT_BYTES)
    with pytest.raises(ValueError, match=f"from 0 to .* blocks, not {entries}"):
        index.add_pod({Tier.GPU: 3, Tier.DISK: entries})
    # nothing came of it
    pod = index.add_pod({Tier.GPU: 3})
    assert pod == 0
    with pytest.raises(ValueError, match=f"not {entries}"):
        index.resize(pod, Tier.GPU, entries)
    assert index.capacity(pod, Tier.GPU) == 3
