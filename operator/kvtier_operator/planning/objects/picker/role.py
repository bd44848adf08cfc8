"""Role of the picker: reading what it chooses among, in its own namespace."""

from typing import Any, Final

from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.gateway.inference_pool import has_pool
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan

_READ: Final = ("get", "list", "watch")
_OBJECTIVES: Final = ("inferenceobjectives", "inferencemodelrewrites")


def picker_role(plan: Plan) -> dict[str, Any]:
    """Least rights by flavour.

    Source: config/charts of llm-d-router v0.10.0 and of the inference extension v1.4.0 and v1.5.0 (rbac.yaml,
    leader-election-rbac.yaml). The metrics endpoint is served without authentication, so the cluster-wide
    right to review tokens is not needed.
    """
    names = Names.of(plan)
    router = plan.resource.spec.router
    # the endpoints: addresses and readiness of the engines
    rules = [_rule("", ["pods"], _READ)]
    if has_pool(router):
        # the pool it picks for: selector and ports
        rules.append(_rule("inference.networking.k8s.io", ["inferencepools"], _READ))
        # priorities and model rewrites, which upstream's pickers watch whether or not there are any
        rules += [_rule(group, _OBJECTIVES, _READ) for group in flavor_traits(router.flavor).objectives]
    if router.replicas > 1:
        # leader election: the lease that decides which picker answers
        rules.append(
            _rule("coordination.k8s.io", ["leases"], (*_READ, "create", "update", "patch", "delete"))
        )
        # leader election reports its changes as events
        rules.append(_rule("", ["events"], ("create", "patch")))
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "rules": rules,
    }


def _rule(group: str, resources: tuple[str, ...] | list[str], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
