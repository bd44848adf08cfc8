import math

import pytest
from tests.unit.scorer.scheduling.pool import Pool, address, request

from kvtier_common.tier import Tier
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable


def table_of(pods: int) -> PodTable:
    table = PodTable(PrefixIndex(1 << 24))
    for pod in range(pods):
        table.put(PodInfo(f"pod-{pod}", address(pod)), {Tier.GPU: 10, Tier.CPU: 20})
    return table


def load(queue_depth: int = 0, used: float = 0.0, at_s: float = 0.0) -> PodLoad:
    return PodLoad(queue_depth, 1, used, frozenset({"a"}), at_s)


def test_pods_are_numbered_by_the_index_and_their_numbers_given_again() -> None:
    table = table_of(3)
    assert table.candidates(None).tolist() == [0, 1, 2]
    table.drop(address(1))
    assert table.candidates(None).tolist() == [0, 2]
    assert (len(table), table.number(address(1))) == (2, None)
    assert table.put(PodInfo("late", "10.1.1.1:1"), {}) == 1
    assert table.info(1).name == "late"


def test_a_pod_that_is_there_stays_as_it_is() -> None:
    table = table_of(1)
    table.load(address(0), load(queue_depth=7))
    table.resize(address(0), Tier.CPU, 500)
    assert table.put(PodInfo("pod-0", address(0)), {Tier.GPU: 10, Tier.CPU: 20}) == 0
    assert table.queue_depth[0] == 7
    assert table.index.capacity(0, Tier.CPU) == 500


def test_another_pod_at_the_same_address_is_a_new_one() -> None:
    pool = Pool(1)
    pool.read(0, queue_depth=7)
    pool.holds(0, 1, 2)
    assert pool.add("another", address(0)) == 0
    assert (len(pool.table), pool.table.queue_depth[0], pool.table.read_at_s[0]) == (1, 0, -math.inf)
    assert pool.scheduler.pick(request(1, 2), 0.0).matched_tokens[Tier.GPU] == 0


def test_more_pods_than_there_was_room_for_keep_what_was_known() -> None:
    table = table_of(3)
    table.load(address(2), load(queue_depth=7))
    for pod in range(3, 200):
        table.put(PodInfo(f"pod-{pod}", f"10.0.1.{pod}:8000"), {})
    assert table.queue_depth[table.candidates(None)].tolist() == [0, 0, 7] + [0] * 197


def test_what_comes_too_late_changes_nothing() -> None:
    table = table_of(1)
    table.load(address(0), load(queue_depth=2, at_s=5.0))
    table.load(address(0), load(queue_depth=9, at_s=4.0))
    table.load("10.9.9.9:1", load())
    table.resize("10.9.9.9:1", Tier.GPU, 4)
    table.drop("10.9.9.9:1")
    assert (table.queue_depth[0], table.loras) == (2, {0: frozenset({"a"})})


def test_a_pod_is_there_under_its_own_name_at_its_own_address() -> None:
    table = table_of(2)
    assert table.is_there("pod-0", address(0))
    assert not table.is_there("pod-1", address(0))
    assert not table.is_there("pod-0", "10.9.9.9:1")
    table.put(PodInfo("another", address(0)), {})
    assert not table.is_there("pod-0", address(0))
    assert table.is_there("another", address(0))
    table.drop(address(1))
    assert not table.is_there("pod-1", address(1))


def test_candidates_of_a_subset_are_each_there_once_and_ascending() -> None:
    table = table_of(4)
    asked = [address(3), address(1), "10.0.0.3", "10.9.9.9", "10.9.9.9:1"]
    assert table.candidates(asked).tolist() == [1, 3]
    assert table.candidates([]).tolist() == []


def test_sizes_that_no_pod_has_are_as_large_as_can_be() -> None:
    table = table_of(1)
    table.resize(address(0), Tier.DISK, 10**15)
    assert table.index.capacity(0, Tier.DISK) == 1 << 31
    table.put(PodInfo("large", "10.1.1.1:1"), {Tier.DISK: 10**15})


@pytest.mark.parametrize(
    ("queue_depth", "running", "used", "at_s"),
    [(-1, 0, 0.0, 0.0), (0, -1, 0.0, 0.0), (0, 0, -0.5, 0.0), (0, 0, math.nan, 0.0), (0, 0, 0.0, math.inf)],
)
def test_a_reading_that_is_none_is_refused(queue_depth: int, running: int, used: float, at_s: float) -> None:
    with pytest.raises(ValueError, match=r"negative|not a number"):
        PodLoad(queue_depth, running, used, frozenset(), at_s)
