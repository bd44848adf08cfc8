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
_WITHOUT: Final = "engines serve without it meanwhile"
_WITH_THE_REST: Final = "engines serve with the rest of it meanwhile"


@dataclass(frozen=True, slots=True)
class StorePods:
    """The pods of a store, as far as they are seen."""

    shards: Sequence[DeploymentFacts | None]  # of each of its servers; None for one that is not there yet
    not_ready: Sequence[NotReadyPod] = ()


def store_ready_condition(store: StorePods, failures: Sequence[ApplyFailure]) -> UntimedCondition:
    """The condition by the store's Deployments; engines serve without it, so Ready does not depend on it.

    A store that runs is ready although its Secret cannot be made: then somebody else has made it.
    """
    seen = [shard for shard in store.shards if shard is not None]
    is_there = len(seen) == len(store.shards)
    counts = replica_counts(_together(seen), "store pods") if seen else ""
    if is_there and all(shard.complete for shard in seen):
        return true_condition(STORE_READY, "AllReady", counts)
    meanwhile = _WITHOUT if not any(shard.ready_replicas for shard in seen) else _WITH_THE_REST
    if failures:
        why = "; ".join(failure.message for failure in failures)
        return false_condition(STORE_READY, failures[0].reason, f"{why}; {meanwhile}")
    if not is_there:
        condition = not_created_condition(STORE_READY, "the store's")
        return false_condition(STORE_READY, condition.reason, f"{condition.message} yet; {meanwhile}")
    blocked = next((shard for shard in seen if shard.failed_reason), _together(seen))
    reason, message = blocking_reason(blocked, store.not_ready)
    return false_condition(STORE_READY, reason, "; ".join(filter(None, (counts, message, meanwhile))))


def _together(shards: Sequence[DeploymentFacts]) -> DeploymentFacts:
    return DeploymentFacts(
        desired_replicas=sum(shard.desired_replicas for shard in shards),
        replicas=sum(shard.replicas for shard in shards),
        updated_replicas=sum(shard.updated_replicas for shard in shards),
        ready_replicas=sum(shard.ready_replicas for shard in shards),
        observed_latest=all(shard.observed_latest for shard in shards),
        stalled=any(shard.stalled for shard in shards),
    )
