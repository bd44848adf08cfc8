"""StoreReady: whether the store that is made for a resource's engines serves them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition, false_condition, true_condition
from kvtier_operator.reconcile.facts.objects import DeploymentFacts
from kvtier_operator.reconcile.status.engines import blocking_reason, not_created_condition, replica_counts

STORE_READY: Final = "StoreReady"
_MEANWHILE: Final = "engines serve without it meanwhile"


@dataclass(frozen=True, slots=True)
class StorePods:
    """The pods of a store, as far as they are seen."""

    deployment: DeploymentFacts | None
    not_ready: Sequence[NotReadyPod] = ()


def store_ready_condition(store: StorePods, failures: Sequence[ApplyFailure]) -> UntimedCondition:
    """The condition by the store's Deployment; engines serve without it, so Ready does not depend on it.

    A store that runs is ready although its Secret cannot be made: then somebody else has made it.
    """
    facts = store.deployment
    if facts is not None and facts.complete:
        return true_condition(STORE_READY, "AllReady", replica_counts(facts, "store pods"))
    if failures:
        why = "; ".join(failure.message for failure in failures)
        return false_condition(STORE_READY, failures[0].reason, f"{why}; {_MEANWHILE}")
    if facts is None:
        condition = not_created_condition(STORE_READY, "the store's")
        return false_condition(STORE_READY, condition.reason, f"{condition.message} yet; {_MEANWHILE}")
    reason, message = blocking_reason(facts, store.not_ready)
    parts = (replica_counts(facts, "store pods"), message, _MEANWHILE)
    return false_condition(STORE_READY, reason, "; ".join(filter(None, parts)))
