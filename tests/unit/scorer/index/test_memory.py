"""What the index does with its memory: pages are given back, and what finds no room is forgotten."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.index.prompts import matched_blocks, prompt

from kvtier_common.tier import Tier
from kvtier_scorer.index.layout import PAGE_BYTES, PAGE_SLOTS
from kvtier_scorer.index.prefix_index import PRECISE_LEAST, PrefixIndex

LIMIT_BYTES = 1 << 24
OTHER = prompt((9, 5))


def test_a_pod_that_only_stores_is_bounded() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({})
    index.set_precise(pod, precise=True)
    endless = prompt((0, PRECISE_LEAST + 100))
    index.store(pod, Tier.GPU, endless, None)
    assert (index.used_blocks(pod, Tier.GPU), index.dropped_blocks(pod, Tier.GPU)) == (PRECISE_LEAST, 100)
    assert matched_blocks(index, endless, pod)[0][0] == PRECISE_LEAST
    index.store(pod, Tier.GPU, OTHER, None)
    assert index.dropped_blocks(pod, Tier.GPU) == 105
    index.clear(pod, Tier.GPU)
    index.store(pod, Tier.GPU, OTHER, None)
    assert matched_blocks(index, OTHER, pod)[0][0] == 5
    index.remove_pod(pod)
    assert index.dropped_blocks(index.add_pod({}), Tier.GPU) == 0


def test_ghosts_go_with_the_last_block_that_follows_them() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({})
    index.set_precise(pod, precise=True)
    # two blocks of each of so many prompts that their ghosts alone would fill the tier
    for turn in range(PRECISE_LEAST // 100):
        many = prompt((turn, 202))
        index.store(pod, Tier.GPU, many[101:], int(many[100]))
        index.store(pod, Tier.GPU, many[:100], None)
        index.remove(pod, Tier.GPU, many[::2])
        index.remove(pod, Tier.GPU, many[1::2])
    assert (index.used_blocks(pod, Tier.GPU), index.dropped_blocks(pod, Tier.GPU)) == (0, 0)
    assert index.nbytes < 2 * PAGE_BYTES


def test_a_shrinking_tier_keeps_its_newest_and_gives_pages_back() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    pod = index.add_pod({Tier.GPU: 5 * PAGE_SLOTS})
    old, new = prompt((1, 3 * PAGE_SLOTS)), prompt((2, 100))
    index.assume_stored(pod, old)
    index.assume_stored(pod, new)
    assert index.nbytes > 3 * PAGE_BYTES
    index.resize(pod, Tier.GPU, 150)
    assert (matched_blocks(index, new, pod)[0][0], matched_blocks(index, old, pod)[0][0]) == (100, 50)
    assert index.nbytes < 2 * PAGE_BYTES
    index.resize(pod, Tier.GPU, 0)
    assert index.used_blocks(pod, Tier.GPU) == 0
    assert index.nbytes < PAGE_BYTES


def test_memory_that_was_given_back_is_used_again() -> None:
    index = PrefixIndex(LIMIT_BYTES)
    long = prompt((1, 3 * PAGE_SLOTS))

    def most_bytes() -> int:
        pods = [index.add_pod({Tier.GPU: 5 * PAGE_SLOTS, Tier.CPU: 2 * PAGE_SLOTS}) for _ in range(5)]
        for pod in pods:
            index.assume_stored(pod, long)
        most = index.nbytes
        for pod in pods:
            index.remove_pod(pod)
        assert index.nbytes < PAGE_BYTES
        return most

    first = most_bytes()
    # 5 x (3 + 2) pages of those 170 that the limit allows: without reuse none would be left
    assert [most_bytes() for _ in range(20)] == [first] * 20


def test_used_up_memory_is_for_those_who_have_it() -> None:
    index = PrefixIndex(PAGE_BYTES)
    first, second = (index.add_pod({Tier.GPU: 2 * PAGE_SLOTS}) for _ in range(2))
    long, short = prompt((1, PAGE_SLOTS + 50)), prompt((2, 100))
    index.assume_stored(first, long)
    index.assume_stored(second, long)
    assert matched_blocks(index, long, first, second) == [[PAGE_SLOTS, 0, 0], [0, 0, 0]]
    # its newest take the place of its oldest, although its capacity is larger
    index.assume_stored(first, short)
    assert matched_blocks(index, short, first) == [[100, 0, 0]]
    assert matched_blocks(index, long, first) == [[PAGE_SLOTS - 100, 0, 0]]
    index.remove_pod(first)
    index.assume_stored(second, long)
    assert matched_blocks(index, long, second) == [[PAGE_SLOTS, 0, 0]]


def test_used_up_memory_drops_what_precise_pods_store() -> None:
    index = PrefixIndex(PAGE_BYTES)
    pod = index.add_pod({})
    index.set_precise(pod, precise=True)
    long = prompt((1, PAGE_SLOTS + 50))
    index.store(pod, Tier.GPU, long, None)
    assert (matched_blocks(index, long, pod)[0][0], index.dropped_blocks(pod, Tier.GPU)) == (PAGE_SLOTS, 50)
    # of neither tier is there room even for the parent
    index.store(pod, Tier.GPU, OTHER[1:], int(OTHER[0]))
    index.store(pod, Tier.CPU, OTHER[1:], int(OTHER[0]))
    assert (index.dropped_blocks(pod, Tier.GPU), index.dropped_blocks(pod, Tier.CPU)) == (54, 4)
    index.remove(pod, Tier.GPU, long[PAGE_SLOTS - 4 : PAGE_SLOTS])
    # what is kept of these is the parent's ghost and three blocks
    index.store(pod, Tier.GPU, OTHER[1:], int(OTHER[0]))
    assert (index.used_blocks(pod, Tier.GPU), index.dropped_blocks(pod, Tier.GPU)) == (PAGE_SLOTS - 1, 55)


def test_a_parent_that_only_dropped_blocks_would_follow_takes_no_room() -> None:
    index = PrefixIndex(PAGE_BYTES)
    pod = index.add_pod({})
    index.set_precise(pod, precise=True)
    index.store(pod, Tier.GPU, prompt((1, PAGE_SLOTS - 1)), None)
    # the parent would take the last slot, and nothing that follows it finds one
    index.store(pod, Tier.GPU, OTHER[1:], int(OTHER[0]))
    assert index.dropped_blocks(pod, Tier.GPU) == len(OTHER) - 1
    one = prompt((2, 1))
    index.store(pod, Tier.GPU, one, None)
    assert (matched_blocks(index, one, pod)[0][0], index.used_blocks(pod, Tier.GPU)) == (1, PAGE_SLOTS)


# among the blocks that are there the oldest ones, and some that are not
PLACES = st.lists(st.integers(PAGE_SLOTS - 6, PAGE_SLOTS + 5), min_size=1, max_size=9)


@given(requests=st.lists(PLACES, min_size=1, max_size=9))
def test_hashes_that_are_no_chain_do_no_harm_to_used_up_memory(requests: list[list[int]]) -> None:
    index = PrefixIndex(PAGE_BYTES)
    pod = index.add_pod({Tier.GPU: 2 * PAGE_SLOTS})
    long = prompt((1, 2 * PAGE_SLOTS))
    index.assume_stored(pod, long[:PAGE_SLOTS])
    for places in requests:
        index.assume_stored(pod, long[places])
        assert index.used_blocks(pod, Tier.GPU) == PAGE_SLOTS
    # it is intact: order of use and table agree on every entry
    index.assume_stored(pod, OTHER)
    assert matched_blocks(index, OTHER, pod)[0][0] == len(OTHER)
    index.resize(pod, Tier.GPU, len(OTHER))
    assert matched_blocks(index, OTHER, pod)[0][0] == index.used_blocks(pod, Tier.GPU) == len(OTHER)
    index.remove_pod(pod)
    assert index.nbytes < PAGE_BYTES
