from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.router.gateway_provider import gateway_provider


def test_no_gateway_no_question() -> None:
    says(verdict(gateway_provider, resource()), PASS, "Passed", "no route")


def test_most_providers_take_pools() -> None:
    one = resource(router={"gateway": {"parentRef": {"name": "g"}, "provider": "istio"}})
    says(verdict(gateway_provider, one), PASS, "Passed", "istio")


def test_kgateway_no_longer_does() -> None:
    one = resource(router={"gateway": {"parentRef": {"name": "g"}, "provider": "kgateway"}})
    result = verdict(gateway_provider, one)
    says(result, WARN, "GatewayWithoutPools", "2.1", "agentgateway")
    assert result.field == "spec.router.gateway.provider"
