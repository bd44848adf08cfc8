"""A condition's message, whatever others wrote into it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import plan_objects
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.observed import PrefixFindings
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.apply.writer import event
from kvtier_operator.reconcile.facts.cached_plan import false_condition, with_transition_time
from kvtier_operator.reconcile.status.build import build_status
from kvtier_operator.reconcile.status.router import UnservedKinds


def test_a_message_is_one_line_that_the_api_takes() -> None:
    foreign = "a\x1b[31m\nb\x9b\u202e" + "x" * 100_000
    condition = with_transition_time(false_condition("Accepted", "Invalid", foreign), [], 1, "now")
    metadata = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}
    for message, most in ((condition["message"], 5000), (event(condition, metadata, "now")["message"], 1024)):
        assert "a?[31m b??xxx" in message
        assert message.isprintable()
        assert len(message) <= most


def test_all_is_well() -> None:
    found = conditions(FULL)
    assert {name: each["status"] for name, each in found.items()} == {
        "Accepted": "True",
        "BudgetFits": "True",
        "NodesFit": "False",  # there are no nodes, but the pods run
        "EnginesReady": "True",
        "RouterReady": "True",
        "Ready": "True",
    }
    assert all(each["observedGeneration"] == 3 for each in found.values())
    assert found["Ready"]["message"] == "2 of 2 engine pods ready; 1 of 1 picker pods ready"


def test_why_no_node_takes_the_engines_stands_beside_their_not_being_ready() -> None:
    said = conditions(replace(FULL, engine=replace(READY, ready_replicas=0)))["Ready"]["message"]
    assert said.startswith("EnginesReady: 0 of 2")
    assert "NodesFit: room for 0 engines" in said


_TAKEN = "ConfigMap x-picker is there already and not this resource's"


@pytest.mark.parametrize(
    "change",
    [
        {"failures": (ApplyFailure(Component.PICKER, "NameTaken", _TAKEN),)},
        {"failures": (ApplyFailure(Component.ENGINE, "NameTaken", _TAKEN),)},
        {"kinds": UnservedKinds(failures=(ApplyFailure(Component.ROUTER, "NameTaken", _TAKEN),))},
    ],
    ids=["picker", "engine", "kind"],
)
def test_what_keeps_all_from_being_made_is_the_reason_of_each(change: dict[str, Any]) -> None:
    found = conditions(replace(FULL, engine=None, picker=None, **change))
    for name in ("EnginesReady", "RouterReady", "Ready"):
        assert (found[name]["status"], found[name]["reason"]) == ("False", "NameTaken")
        assert _TAKEN in found[name]["message"]
        assert "yet" not in found[name]["message"]


def test_what_is_deleted_beside_a_rejected_spec_is_not_on_its_way() -> None:
    rejected = plan_objects({"spec.engine.tensorParallelSize": 3})[0]
    found = conditions(replace(FULL, plan=rejected, engine=None, picker=None))
    for name, whose in (("EnginesReady", "engines'"), ("RouterReady", "picker's")):
        said = found[name]
        assert (said["status"], said["reason"]) == ("False", "NotCreated")
        assert (
            said["message"] == f"the {whose} Deployment is not there, and is not made while Accepted is False"
        )
    assert found["Ready"]["reason"] == found["Accepted"]["reason"]


def test_a_rejected_spec_keeps_the_figures_of_what_runs() -> None:
    before = build_status(FULL, {})
    rejected = plan_objects({"spec.engine.tensorParallelSize": 3})[0]
    after = build_status(replace(FULL, generation=4, plan=rejected), before)
    assert {name: after[name] for name in ("tiers", "router", "selector")} == {
        name: before[name] for name in ("tiers", "router", "selector")
    }
    found = {condition["type"]: condition for condition in after["conditions"]}
    assert found["Accepted"]["reason"] == "HeadsNotDivisible"
    assert "keeps running" in found["Accepted"]["message"]
    assert found["EnginesReady"]["status"] == "True"
    assert found["Ready"]["status"] == "False"


def test_times_change_with_status_or_reason_alone() -> None:
    before = build_status(FULL, {})
    same = build_status(replace(FULL, now="2027-01-01T00:00:00Z"), before)
    assert same == before
    worse = conditions(
        replace(FULL, engine=replace(READY, ready_replicas=1), now="2027-01-01T00:00:00Z"), before
    )
    changed = {name for name, each in worse.items() if each["lastTransitionTime"].startswith("2027")}
    assert changed == {"EnginesReady", "Ready", "Reconciling"}


def test_each_prefix_with_what_an_engine_says_of_it() -> None:
    told = {"tools": PrefixFindings(1200, 1184)}
    plan = replace(FULL.plan, prefixes=("tools", "late"), prefix_findings=told)
    assert build_status(replace(FULL, plan=plan), {})["prefixes"] == [
        {"name": "tools", "tokens": 1200, "cachedTokens": 1184},
        {"name": "late"},
    ]
    assert "prefixes" not in build_status(FULL, {})
