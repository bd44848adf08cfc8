"""Tells of resources in one set of files whose routes would hide each other."""

from collections.abc import Iterable, Iterator

import click

from kvtier_operator.planning.objects.http_route import http_route
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.route_claims import Hidden, claim_of
from kvtier_operator.planning.route_order import RouteOrder


def tell_collisions(plans: Iterable[Plan]) -> bool:
    """Says on standard error which routes hide others, and whether one of them would serve nothing at all.

    Which of two is served only the cluster knows, by their age.
    """
    found = [*_collisions(plans)]
    for route, by in found:
        click.echo(
            f"{by.by.route} and {route}: both ask Gateway {by.gateway} for {by.requests}, and only the one "
            "that is made first gets them: give them different spec.router.gateway.hostnames, or one of them "
            "spec.router.gateway.ownPath",
            err=True,
        )
    return any(by.wholly for _, by in found)


def _collisions(plans: Iterable[Plan]) -> Iterator[tuple[str, Hidden]]:
    routes = (route for plan in plans if (route := http_route(plan)) is not None)
    claims = sorted((claim for route in routes if (claim := claim_of(route))), key=lambda each: each.turn)
    order, names = RouteOrder(), {claim.route: claim for claim in claims}
    order.put(names, names.keys())
    for claim in claims:
        if by := order.hidden(claim.route):
            yield claim.route, by
