"""Whether the gateway's provider takes InferencePools at all."""

from typing import Final

from kvtier_operator.api.spec.router import GatewayProvider
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("gateway-provider", "spec.router.gateway.provider")


def gateway_provider(given: CheckInput) -> CheckResult:
    """Source for kgateway: kgateway-dev/kgateway, pull request 12437 and issue 12619."""
    gateway = given.spec.router.gateway
    if gateway is None:
        return _VERDICTS.passed("no route is made")
    if gateway.provider is GatewayProvider.STANDALONE:
        return _VERDICTS.passed("kvtier runs the gateway itself")
    if gateway.provider is GatewayProvider.KGATEWAY:
        return _VERDICTS.warn(
            "GatewayWithoutPools",
            "kgateway's Envoy takes InferencePools in version 2.1 and earlier only; "
            "from 2.2 use a Gateway of class agentgateway and provider: agentgateway",
            by_itself="makes the route all the same, and RouterReady has what the gateway says of it",
        )
    if gateway.own_path and not provider_of(given.spec.router).rewrites_paths:
        return _VERDICTS.warn(
            "EveryPathPasses",
            f"{gateway.provider} takes an ownPath away and cannot put another path in its place, so clients "
            "reach all paths of the engines, /metrics and those that stop them too; give the resource "
            "hostnames in place of spec.router.gateway.ownPath",
            by_itself="passes all paths",
        )
    return _VERDICTS.passed(f"the route is made for provider {gateway.provider}")
