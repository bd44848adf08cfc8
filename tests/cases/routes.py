"""HTTPRoutes as an API server has them."""

from collections.abc import Iterable, Mapping
from typing import Any

from kvtier_operator.planning.router.route_order import Claim, Hidden, RouteOrder

Document = dict[str, Any]


def route(  # noqa: PLR0913 - one a field
    name: str = "team/qwen",
    *,
    gateway: str = "infra/front",
    section: str = "",
    hosts: Iterable[str] = (),
    created: str = "2026-01-01T00:00:00Z",
    matches: Iterable[Mapping[str, Any]] = ({"path": {"type": "PathPrefix", "value": "/"}},),
    **more: object,
) -> Document:
    """A route, named `namespace/name`, of all paths unless `matches` says otherwise."""
    namespace, own = name.split("/")
    infra, front = gateway.split("/")
    parent: Document = {"namespace": infra, "name": front}
    spec: Document = {
        "parentRefs": [parent | ({"sectionName": section} if section else {})],
        "rules": [{"matches": [*matches]}],
    }
    return {
        "metadata": {"namespace": namespace, "name": own, "creationTimestamp": created, "generation": 1},
        "spec": spec | ({"hostnames": [*hosts]} if hosts else {}),
        **more,
    }


def parent_status(
    *conditions: Mapping[str, Any],
    gateway: str = "infra/front",
    controller: str = "example.com/gateway",
    **reference: object,
) -> Document:
    """One entry of `status.parents`."""
    namespace, name = gateway.split("/")
    return {
        "parentRef": {"namespace": namespace, "name": name, **reference},
        "controllerName": controller,
        "conditions": [*conditions],
    }


def condition(
    type_: str = "Accepted", status: str = "True", reason: str = "", message: str = "", generation: int = 1
) -> Document:
    """One condition in it."""
    return {
        "type": type_,
        "status": status,
        "reason": reason or type_,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def covers(one: Claim, other: Claim) -> bool:
    """Whether it attaches wherever another one does."""
    return all(
        any(
            mine.gateway == theirs.gateway
            and mine.section in ("", theirs.section)
            and mine.port in (0, theirs.port)
            for mine in one.listeners
        )
        for theirs in other.listeners
    )


def find_hidden(claim: Claim, others: Iterable[Claim]) -> Hidden | None:
    """What hides one of them, or a part of it."""
    order, claims = RouteOrder(), {each.route: each for each in (claim, *others)}
    order.put(claims, {claim.route})
    return order.find_hidden(claim.route)
