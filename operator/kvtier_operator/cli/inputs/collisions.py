"""Resources in one set of files whose routes would hide each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvtier_operator.planning.objects.gateway.http_route import http_routes
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.route_order import Hidden, RouteOrder, claim_of


@dataclass(frozen=True, slots=True)
class Collision:
    """Two routes that ask for the same requests.

    Attributes:
        route: The one that gets none of them, `namespace/name`; which of the two only the cluster knows, by
            their age.
        sources: The files of both, the other one's first.
        hidden: What it is hidden by, and whether wholly.
    """

    route: str
    sources: tuple[str, str]
    hidden: Hidden

    def __str__(self) -> str:
        """One line for whoever wrote the files."""
        by, files = self.hidden, " and ".join(dict.fromkeys(self.sources))
        return (
            f"{files}: RouteHidden spec.router.gateway: {by.by.route} and {self.route} both ask Gateway "
            f"{by.gateway} for {by.requests}, and only the one that is made first gets them: give them "
            "different spec.router.gateway.hostnames, or one of them spec.router.gateway.ownPath"
        )


def collisions(plans: Iterable[tuple[str, Plan]]) -> tuple[Collision, ...]:
    """The routes that others hide.

    Args:
        plans: Each with the file of its resource.
    """
    return tuple(_collisions(plans))


def _collisions(plans: Iterable[tuple[str, Plan]]) -> Iterator[Collision]:
    claims, files = [], {}
    for source, plan in plans:
        for route in http_routes(plan)[:1]:
            if claim := claim_of(route, ours=True):
                claims.append(claim)
                files[claim.route] = source
    order, names = RouteOrder(), {claim.route: claim for claim in claims}
    order.put(names, names.keys())
    for claim in sorted(claims, key=lambda each: each.turn):
        if by := order.hidden(claim.route):
            yield Collision(claim.route, (files[by.by.route], files[claim.route]), by)
