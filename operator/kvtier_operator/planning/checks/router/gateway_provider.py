"""Whether the gateway's provider takes InferencePools at all."""

from typing import Final

from kvtier_operator.api.spec.gateway import GatewayProvider
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
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
    return _VERDICTS.passed(f"the route is made for provider {gateway.provider}")
