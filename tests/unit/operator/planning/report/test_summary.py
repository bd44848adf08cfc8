"""A plan on one screen."""

import pytest
from tests.cases.kvcachetier import DISK
from tests.cases.planning import resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.demand import memory_bytes
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.summary import summarise
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import Outcome


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCacheMP"])
def test_as_wide_as_the_terminal_and_no_longer_than_a_screen(backend: str, columns: int) -> None:
    plan = make_plan(resource(backend=backend, tiers={"disk": DISK}, engine={"gpu": "h100"}), Observed())
    lines = summarise(plan, columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    warnings = [line for check in plan.checks if check.outcome is not Outcome.PASS for line in [check.name]]
    notes = sum(len(note) // columns + 1 for note in plan.notes)
    assert len(lines) <= 25 + notes + 8 * len(warnings)
    for name in warnings:
        assert any(f"! {name} " in line for line in lines)


def test_what_is_wrong_is_said_as_in_the_whole_report() -> None:
    plan = make_plan(resource(engine={"extraArgs": ["--port", "1"]}, router={"replicas": 2}), Observed())
    loud = summarise(plan).split("\n\n")[1]
    assert loud.startswith("1 rejected, 1 to look at ─")
    assert loud in explain(plan)


def test_memory_is_all_that_a_node_gives() -> None:
    pages = {"cpu": {"capacity": "40Gi", "hugepages": {"policy": "Require"}}}
    plan = make_plan(resource(backend="LMCacheMP", tiers=pages), Observed())
    limit = sum(line.bytes for line in plan.budget.memory)
    beside = sum(sidecar.memory_bytes for sidecar in plan.engine.sidecars)
    assert memory_bytes(plan) == limit + beside + 40 * 1024**3
    assert f"memory    {size(memory_bytes(plan))} of the node for each pod: huge pages 40 GiB" in summarise(
        plan
    )


@pytest.mark.parametrize(
    ("replicas", "strategy", "said"),
    [
        (0, "Surge", "no engines"),
        (1, "InPlace", "nobody serves for up to"),
        (1, "Surge", "starts one engine more before one goes"),
        (3, "InPlace", "one at a time, in place"),
        (3, "Surge", "starts one engine more before one goes"),
    ],
)
def test_what_a_change_costs(replicas: int, strategy: str, said: str) -> None:
    case = resource(replicas=replicas, engine={"rollout": {"strategy": strategy}})
    assert said in summarise(make_plan(case, Observed()))
