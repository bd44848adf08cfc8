"""What the index and the pod table learn from requests that were sent, and from who answered them."""

from tests.unit.scorer.scheduling.pool import PREFIX, Pool, address, request

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import QUEUE


def test_a_prefix_goes_where_it_was_sent_before() -> None:
    pool = Pool(20)
    first = pool.scheduler.pick(request(1, 2), 0.0)
    assert first.matched_tokens == {Tier.GPU: 0, Tier.CPU: 0}
    pool.scheduler.record_sent(first)
    again = pool.scheduler.pick(request(1, 2, 3), 0.0)
    assert again.address == first.address
    assert again.matched_tokens == {Tier.GPU: 32, Tier.CPU: 32}


def test_a_pick_that_was_not_sent_is_not_remembered() -> None:
    pool = Pool(20)
    pool.scheduler.pick(request(1, 2), 0.0)
    assert pool.picks(request(1, 2), times=5) != pool.picks(request(1, 2), times=400)
    assert pool.scheduler.pick(request(1, 2), 0.0).matched_tokens == {Tier.GPU: 0, Tier.CPU: 0}


def test_a_burst_of_one_prompt_between_readings_leaves_the_pod_that_holds_it() -> None:
    pool = Pool(4)
    for pod in range(4):
        pool.read(pod)
    picked = []
    for _ in range(20):
        pick = pool.scheduler.pick(request(1, 2), 0.0)
        pool.scheduler.record_sent(pick)
        picked.append(pick.pod)
    # the first few stay, as the prefix is worth 2 and each of them takes 2/5; then others get their share
    assert len(set(picked[:5])) == 1
    assert set(picked) == {0, 1, 2, 3}


def test_a_reading_forgets_what_was_sent_before_it() -> None:
    pool = Pool(2)
    for pod in range(2):
        pool.read(pod)
    for _ in range(10):
        pool.scheduler.record_sent(pool.scheduler.pick(request(), 0.0))
    for pod in range(2):
        pool.read(pod, at_s=0.1)
    explained = pool.scheduler.explain(request(), 0.1)
    assert [pod.picked for pod in explained.pods] == [0, 0]
    assert [pod.scores[QUEUE] for pod in explained.pods] == [1.0, 1.0]


def test_without_readings_a_burst_is_still_spread_and_forgotten_in_time() -> None:
    pool = Pool(2)
    for _ in range(10):
        pool.scheduler.record_sent(pool.scheduler.pick(request(1), 1.0))
    counts = [pod.picked for pod in pool.scheduler.explain(request(1), 1.0).pods]
    assert sum(counts) == 10
    assert min(counts) > 0
    later = pool.scheduler.explain(request(1), 1.0 + pool.settings.metrics.staleness_s + 0.1)
    assert [pod.picked for pod in later.pods] == [0, 0]


def test_what_is_sent_to_a_pod_that_left_is_not_credited_to_its_successor() -> None:
    pool = Pool(1)
    pick = pool.scheduler.pick(request(1, 2), 0.0)
    pool.table.drop(address(0))
    pool.scheduler.record_sent(pick)
    assert pool.add("another", address(0)) == pick.pod
    pool.scheduler.record_sent(pick)
    again = pool.scheduler.pick(request(1, 2), 0.0)
    assert (again.pod_name, again.matched_tokens[Tier.GPU]) == ("another", 0)
    assert pool.scheduler.explain(request(1), 0.0).pods[0].picked == 0


def test_the_pod_that_answered_in_place_of_the_picked_one_holds_the_prompt_too() -> None:
    pool = Pool(3)
    pick = pool.scheduler.pick(request(1, 2, subset={address(0)}), 0.0)
    pool.scheduler.record_sent(pick)
    pool.scheduler.record_served_by(pick, address(2))
    assert held_blocks(pool, 1, 2) == {"pod-0": 2, "pod-1": 0, "pod-2": 2}
    # it was not sent there by a pick: its queue is not counted on
    assert {pod.name: pod.picked for pod in pool.scheduler.explain(request(), 0.0).pods} == {
        "pod-0": 1,
        "pod-1": 0,
        "pod-2": 0,
    }


def test_an_answer_from_the_picked_pod_or_from_none_changes_nothing() -> None:
    pool = Pool(2)
    pick = pool.scheduler.pick(request(1, 2, subset={address(0)}), 0.0)
    pool.scheduler.record_served_by(pick, address(0))
    pool.scheduler.record_served_by(pick, "10.9.9.9:1")
    pool.scheduler.record_served_by(pool.scheduler.pick(request(), 0.0), address(1))
    assert held_blocks(pool, 1, 2) == {"pod-0": 0, "pod-1": 0}


def test_who_answered_is_told_by_its_address_and_not_by_its_number() -> None:
    pool = Pool(1)
    pick = pool.scheduler.pick(request(1, 2), 0.0)
    pool.table.drop(address(0))
    assert pool.add("another", address(5)) == pick.pod
    pool.scheduler.record_served_by(pick, address(5))
    assert held_blocks(pool, 1, 2) == {"another": 2}


def held_blocks(pool: Pool, *blocks: int) -> dict[str, int]:
    """Blocks of a prompt that each pod is believed to hold on its device."""
    pods = pool.scheduler.explain(request(*blocks), 0.0).pods
    return {pod.name: pod.matched_tokens[Tier.GPU] // PREFIX.block_tokens for pod in pods}
