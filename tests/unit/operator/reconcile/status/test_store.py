"""StoreReady says how a store is, and Ready does not depend on it."""

from dataclasses import replace

from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.facts.objects import DeploymentFacts
from kvtier_operator.reconcile.status.store import StorePods

ONE = replace(READY, desired_replicas=1, replicas=1, updated_replicas=1, ready_replicas=1)
DENIED = ApplyFailure(Component.STORE, "Forbidden", "Secret x-store cannot be made")


def said(deployment: DeploymentFacts | None, *failures: ApplyFailure) -> dict[str, object]:
    by_type = conditions(replace(FULL, store=StorePods(deployment), failures=failures))
    assert by_type["Ready"]["status"] == "True"
    condition: dict[str, object] = by_type["StoreReady"]
    return condition


def test_without_a_store_there_is_no_condition() -> None:
    assert "StoreReady" not in conditions(FULL)


def test_it_is_ready_with_its_pod() -> None:
    well = said(ONE)
    assert (well["status"], well["reason"]) == ("True", "AllReady")
    assert said(ONE, DENIED)["status"] == "True", "somebody else has made the Secret"


def test_engines_serve_without_it() -> None:
    missing = said(None)
    assert (missing["status"], missing["reason"]) == ("False", "NotCreated")
    starting = said(replace(ONE, ready_replicas=0))
    assert (starting["status"], starting["reason"]) == ("False", "Progressing")
    assert starting["message"] == "0 of 1 store pods ready; engines serve without it meanwhile"
    denied = said(replace(ONE, ready_replicas=0), DENIED)
    assert (denied["reason"], str(denied["message"]).partition(";")[0]) == ("Forbidden", DENIED.message)
