import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.unit.scorer.scheduling.pool import PREFIX, Pool, address, prompt, request, settings

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.errors import NoEndpointError
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import PickRequest, Prompt
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler


def test_the_weighted_sum_of_2_2_1_1() -> None:
    # queue depths 2, 4, 10 -> 1, 0.75, 0; used 0.5, 0.25, 0 -> 0.5, 0.75, 1;
    # of 4 blocks pod 0 holds none, pod 1 two and pod 2 all, in both tiers
    pool = Pool(3)
    pool.holds(1, 1, 2)
    pool.holds(2, 1, 2, 3, 4)
    for pod, depth, used in ((0, 2, 0.5), (1, 4, 0.25), (2, 10, 0.0)):
        pool.read(pod, depth, used)
    explained = pool.scheduler.explain(request(1, 2, 3, 4), 0.0)
    totals = {pod.name: pod.total for pod in explained.pods}
    assert totals == {
        "pod-0": pytest.approx(2 * 1 + 2 * 0.5),
        "pod-1": pytest.approx(2 * 0.75 + 2 * 0.75 + 0.5 + 0.5),
        "pod-2": pytest.approx(0 + 2 * 1 + 1 + 1),
    }
    # two are equal, at 4
    assert pool.picks(request(1, 2, 3, 4)) == {"pod-1", "pod-2"}
    pick = pool.scheduler.pick(request(1, 2, 3, 4), 0.0)
    assert pick.score == pytest.approx(4.0)
    assert pick.address == address(pick.pod)
    assert pick.prompt_tokens == 64


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({QUEUE: 1.0}, {"pod-0"}),
        ({KV_CACHE_UTILIZATION: 1.0}, {"pod-1"}),
        ({PREFIX_SCORERS[Tier.GPU]: 1.0}, {"pod-2"}),
        ({QUEUE: 1.0, PREFIX_SCORERS[Tier.GPU]: 3.0}, {"pod-2"}),
    ],
)
def test_only_what_has_a_weight_counts(weights: dict[str, float], expected: set[str]) -> None:
    pool = Pool(3, settings(weights))
    pool.holds(2, 1, 2)
    for pod, depth, used in ((0, 0, 0.5), (1, 4, 0.25), (2, 4, 0.75)):
        pool.read(pod, depth, used)
    assert pool.picks(request(1, 2)) == expected


def test_every_one_of_the_equally_good_pods_is_picked() -> None:
    assert len(Pool(8).picks(request(1), times=400)) == 8


def test_the_same_seed_repeats_a_run() -> None:
    one, same, other = (
        [pool.scheduler.pick(request(turn), 0.0).pod for turn in range(40)]
        for pool in (Pool(8, seed=1), Pool(8, seed=1), Pool(8, seed=2))
    )
    assert one == same
    assert one != other


def test_a_pod_that_stopped_answering_gets_nothing_while_another_one_answers() -> None:
    pool = Pool(2)
    pool.read(0, queue_depth=0, at_s=0.0)
    pool.read(1, queue_depth=900, used=0.9, at_s=10.0)
    assert pool.picks(request(1), now_s=10.0) == {"pod-1"}


def test_a_pod_that_was_never_read_gets_nothing_while_another_one_is_read() -> None:
    pool = Pool(2)
    pool.read(1, queue_depth=900, used=0.9)
    assert pool.picks(request(1)) == {"pod-1"}


def test_when_no_pod_answers_the_last_readings_count() -> None:
    pool = Pool(2)
    pool.read(0, queue_depth=3)
    pool.read(1, queue_depth=1)
    assert pool.picks(request(1), now_s=1000.0) == {"pod-1"}


def test_subsets() -> None:
    pool = Pool(4)
    assert pool.picks(request(1, subset={address(1), address(3), "10.9.9.9:1"})) == {"pod-1", "pod-3"}
    assert pool.picks(request(1, subset={address(2)})) == {"pod-2"}


def test_an_address_of_a_subset_without_a_port_is_every_port_of_its_pod() -> None:
    pool = Pool(2)
    pool.add("rank-0", "10.1.1.1:8000")
    pool.add("rank-1", "10.1.1.1:8001")
    # the beginning of another address is not that address
    pool.add("other", "10.1.1.11:8000")
    assert pool.picks(request(1, subset={"10.1.1.1"})) == {"rank-0", "rank-1"}
    assert pool.picks(request(1, subset={"10.1.1.1", "10.1.1.1:8001", address(0)})) == {
        "rank-0",
        "rank-1",
        "pod-0",
    }
    pool.add("six", "[fd00::1]:8000")
    assert pool.picks(request(1, subset={"[fd00::1]"})) == {"six"}


def test_the_queues_of_others_do_not_change_a_subsets_scores() -> None:
    pool = Pool(3, settings({QUEUE: 1.0}))
    for pod, depth in enumerate((0, 4, 100)):
        pool.read(pod, depth)
    pick = pool.scheduler.pick(request(1, subset={address(1), address(2)}), 0.0)
    assert (pick.pod_name, pick.score) == ("pod-1", 1.0)


@pytest.mark.parametrize("subset", [set(), {"10.9.9.9:1"}])
def test_no_endpoint_of_the_subset_is_ready(subset: set[str]) -> None:
    with pytest.raises(NoEndpointError, match=rf"none of the {len(subset)} endpoints .* 2 others are"):
        Pool(2).scheduler.pick(request(1, subset=subset), 0.0)


def test_no_pod_is_ready() -> None:
    with pytest.raises(NoEndpointError, match="no pod is ready"):
        Pool(0).scheduler.pick(request(1), 0.0)


def test_without_prefix_scorers_nothing_is_hashed() -> None:
    pool = Pool(2, settings({QUEUE: 1.0}, prefix=None))
    pick = pool.scheduler.pick(request(1, 2), 0.0)
    pool.scheduler.record_sent(pick)
    assert (len(pick.hashes), pick.matched_tokens) == (0, {})


@pytest.mark.parametrize("other", [prompt(1, 2, model="adapter"), prompt(1, 2, salt="tenant")])
def test_models_and_salts_keep_prefixes_apart(other: Prompt) -> None:
    pool = Pool(1)
    pool.holds(0, 1, 2)
    assert pool.scheduler.pick(request(1, 2), 0.0).matched_tokens[Tier.GPU] == 32
    assert pool.scheduler.pick(PickRequest(other), 0.0).matched_tokens[Tier.GPU] == 0


def test_tokens_are_counted_where_they_are_known() -> None:
    pool = Pool(1)
    tokens = np.arange(40, dtype=np.uint32)
    asked = PickRequest(Prompt("m", "", b"", tokens))
    pool.scheduler.record_sent(pool.scheduler.pick(asked, 0.0))
    again = pool.scheduler.pick(asked, 0.0)
    assert (again.prompt_tokens, again.matched_tokens[Tier.GPU]) == (40, 32)


def test_no_more_of_a_prompt_is_looked_at_than_the_settings_say() -> None:
    pick = Pool(1).scheduler.pick(request(*range(1000)), 0.0)
    assert (len(pick.hashes), pick.prompt_tokens) == (PREFIX.max_blocks, 16_000)


def test_table_and_scheduler_must_share_an_index() -> None:
    with pytest.raises(ValueError, match="another index"):
        Scheduler(settings(), PodTable(PrefixIndex(1 << 20)), PrefixIndex(1 << 20), np.random.default_rng())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 6)),
        st.tuples(st.just("drop"), st.integers(0, 6)),
        st.tuples(st.just("read"), st.integers(0, 6)),
        st.tuples(st.just("pick"), st.integers(0, 6)),
    ),
    max_size=40,
)


@hypothesis_settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_comes_and_goes_a_pick_is_a_pod_that_is_there_with_the_highest_total(
    steps: list[tuple[str, int]],
) -> None:
    pool = Pool(0)
    there: dict[str, str] = {}
    for now, (step, pod) in enumerate(steps):
        now_s = now / 10
        if step == "add":
            there[address(pod)] = f"pod-{now}"
            pool.add(f"pod-{now}", address(pod))
        elif step == "drop":
            there.pop(address(pod), None)
            pool.table.drop(address(pod))
        elif step == "read":
            pool.read(pod, queue_depth=now % 7, used=now % 5 / 5, at_s=now_s)
        elif there:
            asked = request(pod, pod + 1)
            explained = pool.scheduler.explain(asked, now_s)
            pick = pool.scheduler.pick(asked, now_s)
            assert there[pick.address] == pick.pod_name
            assert pick.score == explained.pods[0].total
            assert pick.address in {pod.address for pod in explained.pods if pod.best}
            pool.scheduler.record_sent(pick)
        else:
            with pytest.raises(NoEndpointError):
                pool.scheduler.pick(request(pod), now_s)
        assert {info.address: info.name for info in pool.table} == there
