"""Objects as an API server would hand them out, made from what the operator wants."""

import copy
from dataclasses import replace
from typing import Any

from tests.cases.kvcachetier import document

from kvtier_operator.planning.namespace.namespace import UNBOUNDED, Namespace
from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.cache.live_objects import Children
from kvtier_operator.reconcile.cache.resources import Key, Tiers
from kvtier_operator.reconcile.loop.cached_plan import Planned
from kvtier_operator.reconcile.loop.planning import View, plan_tier

UID = "uid-of-the-resource"
VIEW = View(Observed(nodes=()), 0, "engines of this spec")


def stored(
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


def planned(
    changes: dict[str, object] | None = None, namespace: Namespace = UNBOUNDED
) -> tuple[Planned, tuple[Wanted, ...]]:
    """What is made of it in a namespace."""
    tiers = Tiers()
    key = tiers.seen(stored(changes))
    assert key
    tier = tiers.get(key)
    assert tier
    return plan_tier(Key(*key), tier, replace(VIEW, namespace=namespace))


def live(wanted: Wanted, version: int = 10, **metadata: object) -> dict[str, Any]:
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


def children_of(*wanted: Wanted) -> Children:
    """A store in which these are live."""
    children = Children(lambda *_: None)
    for each in wanted:
        children.seen(each.kind, live(each))
    return children
