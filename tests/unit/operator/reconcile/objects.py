"""Objects as an API server would hand them out, made from what the operator wants."""

import copy
from dataclasses import replace
from typing import Any

from tests.cases.kvcachetier import document

from kvtier_operator.planning.cluster.storage import StorageClass
from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.cache.resources import ResourceCache, key_of
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan, DesiredObject
from kvtier_operator.reconcile.loop.plan_resource import ClusterObservation, plan_resource

UID = "uid-of-the-resource"
VIEW = ClusterObservation(Observed(nodes=()), 0, "engines of this spec")


def stored_resource(
    changes: dict[str, object] | None = None, *, generation: int = 1, version: int = 1
) -> dict[str, Any]:
    """A KVCacheTier as an API server has it."""
    one = document(changes or {})
    one["metadata"] |= {
        "namespace": "default",
        "uid": UID,
        "generation": generation,
        "resourceVersion": str(version),
    }
    return one


def plan_objects(
    changes: dict[str, object] | None = None, storage_classes: tuple[StorageClass, ...] | None = None
) -> tuple[CachedPlan, tuple[DesiredObject, ...]]:
    """What is made of it in a cluster with these storage classes."""
    resources = ResourceCache(lambda _: None)
    resources.upsert(stored_resource(changes))
    key = key_of(stored_resource(changes))
    resource = resources.get(key)
    assert resource
    return plan_resource(key, resource, replace(VIEW, storage_classes=storage_classes))


def live_manifest(wanted: DesiredObject, version: int = 10, **metadata: object) -> dict[str, Any]:
    """A wanted object after it was applied."""
    one: dict[str, Any] = copy.deepcopy(dict(wanted.body or {}))
    one["metadata"] |= {
        "uid": f"uid of {wanted.ref}",
        "resourceVersion": str(version),
        "generation": 1,
        **metadata,
    }
    one["metadata"]["managedFields"] = [{"manager": "kvtier", "operation": "Apply"}]
    return one


def live_objects_of(*wanted: DesiredObject) -> LiveObjectCache:
    """A store in which these are live."""
    live_objects = LiveObjectCache(lambda *_: None)
    for each in wanted:
        live_objects.upsert(each.kind, live_manifest(each))
    return live_objects
