"""The simulator and the caches that it compares with, on traces short enough to be followed by hand."""

import pytest
from tests.bench.connector.hit_rate import (
    WORKLOADS,
    ARCCache,
    KVTierCache,
    LRUCache,
    Workload,
    compare,
    hit_rate,
    optimal_hits,
    scan_mix,
)

CACHES = (KVTierCache, LRUCache, ARCCache)


@pytest.mark.parametrize("make", CACHES)
def test_a_chunk_behind_a_gap_is_no_hit(make: type[KVTierCache | LRUCache | ARCCache]) -> None:
    cache = make(8)
    assert cache.use([1, 2, 3]) == 0
    assert cache.use([1, 9, 3]) == 1
    assert cache.use([1, 9, 3]) == 3


@pytest.mark.parametrize("make", CACHES)
def test_of_a_prompt_the_tail_leaves_before_the_root(make: type[KVTierCache | LRUCache | ARCCache]) -> None:
    cache = make(4)
    cache.use([1, 2, 3, 4])
    cache.use([5])
    assert cache.use([1, 2, 3, 4]) == 3


@pytest.mark.parametrize("make", CACHES)
def test_of_a_prompt_larger_than_the_cache_the_beginning_stays(
    make: type[KVTierCache | LRUCache | ARCCache],
) -> None:
    cache = make(3)
    cache.use([1, 2, 3, 4, 5])
    assert cache.use([1, 2, 3, 4, 5]) == 3


def test_lru_keeps_what_was_used_last() -> None:
    cache = LRUCache(2)
    assert [cache.use([chunk]) for chunk in (1, 2, 1, 3, 1, 2)] == [0, 0, 1, 0, 1, 0]


def test_arc_keeps_what_was_used_twice_through_a_scan_and_lru_does_not() -> None:
    trace = [1, 1, 2, 3, 4, 1]
    for make, last in ((ARCCache, 1), (LRUCache, 0)):
        cache = make(2)
        assert [cache.use([chunk]) for chunk in trace] == [0, 1, 0, 0, 0, last]


def test_arc_gives_the_recent_more_room_when_one_that_it_evicted_comes_back() -> None:
    cache = ARCCache(2)
    for chunk in (1, 1, 2, 3):  # 1 was used twice; 2 has left for 3 and is remembered
        cache.use([chunk])
    assert cache.use([2]) == 0  # remembered: of two recent ones one stays, and 1 leaves for it
    assert [cache.use([chunk]) for chunk in (3, 2, 1)] == [1, 1, 0]


def test_the_optimum_knows_what_comes_and_need_not_store_what_does_not() -> None:
    loop = [[1], [2], [3]] * 3
    assert optimal_hits(loop, 2) == [0, 0, 0, 1, 1, 0, 1, 1, 0]
    assert optimal_hits([[1, 2], [3, 4], [1, 2]], 2) == [0, 0, 2]
    assert optimal_hits([[1], [2], [3], [2], [1]], 1) == [0, 0, 0, 1, 0]


def test_the_rate_leaves_out_the_warm_up() -> None:
    trace = [[1, 2]] + [[3]] * 4
    assert hit_rate(trace, [2, 0, 1, 1, 0]) == pytest.approx(2 / 4)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_traces_are_the_same_for_a_seed_and_their_prompts_are_prefixes_that_grow(workload: Workload) -> None:
    trace = workload.trace(7)[:300]
    assert trace == workload.trace(7)[:300]
    before: dict[int, int | None] = {}
    for prompt in trace:
        assert len(set(prompt)) == len(prompt)
        for earlier, chunk in zip((None, *prompt), prompt, strict=False):
            assert before.setdefault(chunk, earlier) == earlier


def test_no_cache_is_better_than_the_optimum_and_the_tier_withstands_scans() -> None:
    rates = compare(Workload("scan mix", scan_mix, 400, (512,)), 512, 5)
    assert rates["lru"] < rates["kvtier"] <= rates["optimal"]
    assert rates["arc"] <= rates["optimal"]


def test_of_a_loop_larger_than_the_cache_a_part_stays() -> None:
    cache = KVTierCache(64)
    hits = [sum(cache.use(range(start, start + 8)) for start in range(0, 80, 8)) for _ in range(30)]
    assert sum(hits[20:]) > 10 * 80 / 2
