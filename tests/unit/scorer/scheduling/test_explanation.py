import json

from tests.unit.scorer.scheduling.pool import Pool, address, request

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.scheduling.pods import PodLoad


def test_each_pods_numbers_from_each_scorer() -> None:
    pool = Pool(3)
    pool.holds(1, 1, 2)
    pool.read(0, queue_depth=4, used=0.5)
    pool.table.load(address(1), PodLoad(0, 3, 0.25, frozenset({"b", "a"}), 0.0))
    explained = pool.scheduler.explain(request(1, 2, 3, 4, subset={address(0), address(1)}), 0.1)
    assert (explained.refused, explained.prompt_tokens, explained.blocks, explained.block_tokens) == (
        None,
        64,
        4,
        16,
    )
    best, other, excluded = explained.pods

    assert (best.name, best.best, best.excluded) == ("pod-1", True, None)
    assert best.scores == {
        QUEUE: 1.0,
        KV_CACHE_UTILIZATION: 0.75,
        PREFIX_SCORERS[Tier.GPU]: 0.5,
        PREFIX_SCORERS[Tier.CPU]: 0.5,
    }
    assert best.total == 2 * 1.0 + 2 * 0.75 + 0.5 + 0.5
    assert (best.queue_depth, best.running, best.loras, best.reading_age_s) == (0, 3, ("a", "b"), 0.1)

    assert (other.name, other.best, other.queue_depth, other.total) == ("pod-0", False, 4, 1.0)

    assert (excluded.name, excluded.excluded) == ("pod-2", "not in the subset that the gateway allows")
    assert (excluded.scores, excluded.total, excluded.best) == ({}, 0.0, False)
    assert (excluded.fresh, excluded.reading_age_s) == (False, None)


def test_it_travels_as_json() -> None:
    pool = Pool(2)
    pool.holds(0, 1)
    answer = json.loads(json.dumps(pool.scheduler.explain(request(1), 0.0).as_json()))
    assert answer["weights"] == {"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1}
    assert answer["pods"][0]["matched_tokens"] == {"gpu": 16, "cpu": 16}
    assert set(answer["pods"][0]["scores"]) == set(answer["weights"])


def test_its_names_are_what_people_read() -> None:
    answer = Pool(1).scheduler.explain(request(1), 0.0).as_json()
    assert " ".join(answer) == "refused prompt_tokens block_tokens blocks weights pods"
    assert " ".join(answer["pods"][0]) == (
        "name address excluded preferred best total scores queue_depth picked running kv_cache_utilization "
        "loras reading_age_s fresh saturated matched_tokens kept_tokens"
    )


def test_it_changes_nothing_and_never_fails() -> None:
    empty = Pool(0).scheduler.explain(request(1), 0.0)
    assert (empty.refused, empty.pods) == ("no pod is ready; send it again later", ())
    one, same = Pool(8, seed=3), Pool(8, seed=3)
    for turn in range(20):
        one.scheduler.explain(request(turn), 0.0)
        assert one.scheduler.pick(request(turn), 0.0).pod == same.scheduler.pick(request(turn), 0.0).pod
