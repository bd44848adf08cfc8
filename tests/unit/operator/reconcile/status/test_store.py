"""StoreReady says how a store is, and Ready does not depend on it."""

from collections.abc import Sequence
from dataclasses import replace

from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.facts.objects import DeploymentFacts
from kvtier_operator.reconcile.status.store import StorePods

ONE = replace(READY, desired_replicas=1, replicas=1, updated_replicas=1, ready_replicas=1)
DENIED = ApplyFailure(Component.STORE, "Forbidden", "Secret x-store cannot be made")


def said(*shards: DeploymentFacts | None, failures: Sequence[ApplyFailure] = ()) -> dict[str, object]:
    by_type = conditions(replace(FULL, store=StorePods(shards), failures=failures))
    assert by_type["Ready"]["status"] == "True"
    condition: dict[str, object] = by_type["StoreReady"]
    return condition


def test_without_a_store_there_is_no_condition() -> None:
    assert "StoreReady" not in conditions(FULL)


def test_it_is_ready_with_its_pod() -> None:
    well = said(ONE)
    assert (well["status"], well["reason"]) == ("True", "AllReady")
    assert said(ONE, failures=[DENIED])["status"] == "True", "somebody else has made the Secret"


def test_engines_serve_without_it() -> None:
    missing = said(None)
    assert (missing["status"], missing["reason"]) == ("False", "NotCreated")
    starting = said(replace(ONE, ready_replicas=0))
    assert (starting["status"], starting["reason"]) == ("False", "Progressing")
    assert starting["message"] == "0 of 1 store pods ready; engines serve without it meanwhile"
    denied = said(replace(ONE, ready_replicas=0), failures=[DENIED])
    assert (denied["reason"], str(denied["message"]).partition(";")[0]) == ("Forbidden", DENIED.message)


def test_of_several_servers_the_rest_serves() -> None:
    assert said(ONE, ONE)["message"] == "2 of 2 store pods ready"
    without_one = said(ONE, replace(ONE, ready_replicas=0))
    assert without_one["status"] == "False"
    assert without_one["message"] == "1 of 2 store pods ready; engines serve with the rest of it meanwhile"
    assert said(ONE, None)["reason"] == "NotCreated"
    quota = replace(ONE, replicas=0, ready_replicas=0, failed_reason="FailedCreate", failed_message="no")
    assert said(ONE, quota)["reason"] == "FailedCreate"
