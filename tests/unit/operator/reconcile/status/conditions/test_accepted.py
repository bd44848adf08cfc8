"""Accepted: warnings of an accepted spec, and a spec that is not valid."""

from dataclasses import replace

from tests.unit.operator.reconcile.objects import planned
from tests.unit.operator.reconcile.status.statuses import FULL, conditions


def test_a_default_of_before_that_is_stored_is_kept_and_the_remedy_told() -> None:
    before = planned({"spec.tiers.cpu.memlock": {"policy": "Off"}})[0]
    found = conditions(replace(FULL, plan=before))["Accepted"]
    assert (found["status"], found["reason"]) == ("True", "AcceptedWithWarnings")
    assert "spec.tiers.cpu.memlock.policy: Off: the tier is not page-locked" in found["message"]
    assert "set Prefer, which needs no rights. Off was the default once" in found["message"]
    assert "memlock" not in conditions(FULL)["Accepted"]["message"]


def test_a_spec_that_is_no_spec() -> None:
    invalid, objects = planned({"spec.model.name": 7})
    assert not objects
    found = conditions(replace(FULL, plan=invalid))
    assert found["Accepted"]["reason"] == "Invalid"
    assert "spec.model.name" in found["Accepted"]["message"]
    assert {found[name]["status"] for name in ("BudgetFits", "NodesFit")} == {"Unknown"}
