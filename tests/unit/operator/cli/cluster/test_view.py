"""What is worked out of a resource, its pods and their metrics."""

import pytest
from tests.cases.seen import (
    BUILTIN_TEXT,
    crashing,
    engine_metrics,
    picker_metrics,
    pod,
    resource,
    view_of,
    well,
)

from kvtier_common.metrics.text import read_families
from kvtier_common.tier import Tier
from kvtier_operator.cli.cluster.resource import (
    ENGINE_METRICS,
    Seen,
    engine_figures,
    picker_figures,
    tier_rows,
)
from kvtier_operator.planning.units import GIB


def test_figures_of_all_engines_are_added_up() -> None:
    figures = engine_figures([engine_metrics(), engine_metrics()])
    assert (figures.engines, figures.asked_tokens) == (2, 2_000_000)
    assert figures.hit_tokens == {
        Tier.GPU: 800_000,
        Tier.CPU: 400_000,
        Tier.DISK: 100_000,
        Tier.REMOTE: 0,
    }
    assert figures.prefill_tokens_per_s == 5_000
    assert figures.capacity_bytes == {Tier.CPU: 200 * GIB, Tier.DISK: 2048 * GIB}
    assert figures.used_share == pytest.approx({Tier.GPU: 0.25, Tier.CPU: 0.5, Tier.DISK: 0.1}, abs=1e-4)
    assert (figures.growing, figures.degraded, figures.unpaid) == (0, 0, 0)


def test_what_each_tier_saved() -> None:
    figures = engine_figures([engine_metrics()])
    rows = {row.tier: row for row in tier_rows({}, figures)}
    # 400,000 tokens at 5,000 a second; then less four and one fifths of 5 s of loading
    assert {tier: row.saved_s for tier, row in rows.items()} == pytest.approx(
        {Tier.GPU: 80.0, Tier.CPU: 40.0 - 4.0, Tier.DISK: 10.0 - 1.0}
    )
    assert {tier: row.hit_rate for tier, row in rows.items()} == pytest.approx(
        {Tier.GPU: 0.4, Tier.CPU: 0.2, Tier.DISK: 0.05}
    )


def test_a_tier_that_cost_more_than_it_brought() -> None:
    rows = tier_rows({}, engine_figures([engine_metrics(changes={"kv_offload_load_time_total": 100.0})]))
    assert [row.saved_s for row in rows] == pytest.approx([80.0, 40.0 - 80.0, 10.0 - 20.0])


def test_before_the_first_prompt_nothing_is_said_of_hits_and_savings() -> None:
    nothing = engine_metrics(text="")
    [row] = tier_rows({"cpu": {"bytes": 7, "tokens": 3}}, engine_figures([nothing, nothing]))
    assert (row.capacity_bytes, row.capacity_tokens) == (14, 6), "of both engines, as planned"
    assert (row.filled, row.hit_rate, row.saved_s) == (None, None, None)


def test_without_an_answer_the_sizes_are_one_engine_s() -> None:
    [row] = tier_rows({"cpu": {"bytes": 7, "tokens": 3}}, engine_figures([]))
    assert (row.capacity_bytes, row.capacity_tokens) == (7, 3)


def test_a_disk_that_is_not_used() -> None:
    figures = engine_figures(
        [engine_metrics(changes={"disk_pays": 0.0}), engine_metrics(changes={"disk_degraded": 1.0})]
    )
    assert (figures.unpaid, figures.degraded) == (1, 1)


def test_upstream_s_picker() -> None:
    figures = picker_figures([picker_metrics()])
    assert figures.believed_share == 0.54
    assert (figures.known_engines, figures.stale_engines, figures.picks) == (None, None, None)


def test_our_picker() -> None:
    figures = picker_figures([picker_metrics(BUILTIN_TEXT)])
    assert (figures.known_engines, figures.stale_engines, figures.picks) == (2, 1, 42)
    assert figures.believed_share == 0.6, "tiers overlap: the largest counts"
    assert figures.index_share == {Tier.CPU: 0.25}


def test_a_picker_that_does_not_answer() -> None:
    assert picker_figures([]).believed_share is None


def test_the_whole_of_a_resource() -> None:
    view = view_of(well())
    assert (view.namespace, view.name, view.model, view.backend) == (
        "llm",
        "qwen3-32b",
        "Qwen/Qwen3-32B",
        "KVTier",
    )
    assert (view.replicas, view.ready_replicas, view.is_acted_on) == (2, 2, True)
    assert [(condition.type, condition.status) for condition in view.conditions][-1] == ("Ready", "True")
    assert [(pod.name, pod.component, pod.state) for pod in view.pods] == [
        ("qwen3-32b-engine-a", "engine", "ready"),
        ("qwen3-32b-engine-b", "engine", "ready"),
        ("qwen3-32b-picker-c", "picker", "ready"),
    ]
    assert (view.pods[0].age_s, view.pods[0].node) == (3 * 3600, "node-a")
    assert view.engines.engines == 2
    assert view.picker.believed_share == 0.54


def test_pods_in_every_state() -> None:
    waiting = pod("c", conditions=[{"type": "Ready", "status": "False"}])
    going = pod("d")
    going["metadata"]["deletionTimestamp"] = "2026-11-27T19:59:00Z"
    view = view_of(Seen(resource(), (crashing("a"), pod("b"), waiting, going, pod("e", "bench"))))
    assert [(pod.name, pod.state, pod.restarts) for pod in view.pods] == [
        ("a", "ContainerCrashed", 3),
        ("b", "ready", 0),
        ("c", "starting", 0),
        ("d", "ending", 0),
    ]
    assert "CUDA out of memory" in view.pods[0].message


def test_a_resource_that_nobody_has_acted_on() -> None:
    fresh = resource()
    del fresh["status"]
    view = view_of(Seen(fresh))
    assert (view.is_acted_on, view.conditions, view.tiers, view.pods) == (False, (), (), ())


@pytest.mark.parametrize(("there", "wanted"), [(0, 2), (2, 2), (5, 5)])
def test_with_an_autoscaler_as_many_are_wanted_as_it_has_chosen(there: int, wanted: int) -> None:
    scaled = resource()
    scaled["spec"] |= {"replicas": 1, "autoscaling": {"minReplicas": 2, "maxReplicas": 8}}
    scaled["status"] |= {"replicas": there}
    assert view_of(Seen(scaled)).replicas == wanted


def test_a_store_of_all_engines_is_there_once() -> None:
    """Each engine tells the same store's figures."""
    told = {"kvtier_remote_capacity_bytes": 400.0 * GIB, "kvtier_remote_used_bytes": 100.0 * GIB}
    text = "".join(f'vllm:{name}{{engine="0"}} {value}\n' for name, value in told.items()).encode()
    figures = engine_figures([read_families(text, ENGINE_METRICS)] * 3)
    assert (figures.capacity_bytes, figures.used_share) == ({Tier.REMOTE: 400 * GIB}, {Tier.REMOTE: 0.25})
    [row] = tier_rows({"remote": {"bytes": 1, "tokens": 7}}, figures)[-1:]
    assert (row.capacity_bytes, row.capacity_tokens, row.filled) == (400 * GIB, 7, 0.25)
