"""Accepted: warnings of an accepted spec, and a spec that is not valid."""

from dataclasses import replace

from tests.unit.operator.reconcile.objects import plan_objects
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.reconcile.facts.cached_plan import false_condition


def test_a_default_of_before_that_is_stored_is_kept_and_the_remedy_told() -> None:
    before = plan_objects({"spec.tiers.cpu.memlock": {"policy": "Off"}})[0]
    found = conditions(replace(FULL, plan=before))["Accepted"]
    assert (found["status"], found["reason"]) == ("True", "AcceptedWithWarnings")
    assert "spec.tiers.cpu.memlock.policy: Never: the tier is not page-locked" in found["message"]
    assert "set Prefer, which needs no rights. As Off it was the default once" in found["message"]
    assert "memlock" not in conditions(FULL)["Accepted"]["message"]


def test_a_spec_that_is_no_spec() -> None:
    invalid, objects = plan_objects({"spec.model.name": 7})
    assert not objects
    found = conditions(replace(FULL, plan=invalid))
    assert found["Accepted"]["reason"] == "Invalid"
    assert "spec.model.name" in found["Accepted"]["message"]
    assert {found[name]["status"] for name in ("BudgetFits", "NodesFit")} == {"Unknown"}


def test_storage_that_is_missing_is_said_and_holds_nothing_up() -> None:
    volume = {"capacity": "1Ti", "volume": {"ephemeral": {}}}
    known, desired = plan_objects({"spec.tiers.disk": volume, "spec.model.volume": {"ephemeral": {}}}, ())
    assert desired
    found = conditions(replace(FULL, plan=known, engine=replace(READY, ready_replicas=0)))
    assert (found["BudgetFits"]["status"], found["BudgetFits"]["reason"]) == ("False", "StorageClassMissing")
    assert found["Accepted"]["status"] == "True"
    first, _, others = found["BudgetFits"]["message"].partition("; ")
    message = found["Ready"]["message"]
    assert f"; BudgetFits: {first}" in message
    # the rest stands in the other condition alone
    assert others
    assert others not in message


def test_a_storage_class_is_not_missing_where_engines_have_their_volumes() -> None:
    missing = false_condition("BudgetFits", "StorageClassMissing", "the cluster has no storage class manual")
    known = replace(FULL.plan, budget_fits=missing)
    assert conditions(replace(FULL, plan=known))["BudgetFits"]["status"] == "True"
    waiting = replace(FULL, plan=known, engine=replace(READY, ready_replicas=1))
    assert conditions(waiting)["BudgetFits"]["reason"] == "StorageClassMissing"
