"""Tells of resources in one set of files whose routes would hide each other."""

from collections.abc import Iterable

import click

from kvtier_operator.planning.objects.http_route import http_route
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.route_claims import claim_of, hidden


def tell_collisions(plans: Iterable[Plan]) -> None:
    """Warns on standard error: which of two is served, only the cluster knows, by their age."""
    routes = (route for plan in plans if (route := http_route(plan)) is not None)
    claims = sorted((claim for route in routes if (claim := claim_of(route))), key=lambda each: each.turn)
    for claim in claims:
        if by := hidden(claim, claims):
            click.echo(
                f"{by.by.route} and {claim.route}: both ask Gateway {by.gateway} for {by.requests}, and only "
                "the one that is made first gets them: give them different spec.router.gateway.hostnames",
                err=True,
            )
