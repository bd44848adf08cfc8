import pytest
from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.gateway import gateway_provider
from kvtier_operator.planning.verdict import Outcome


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


@pytest.mark.parametrize(
    ("provider", "own_path", "outcome"), [("gke", True, WARN), ("gke", False, PASS), ("istio", True, PASS)]
)
def test_what_cannot_be_kept_back_is_told(provider: str, own_path: bool, outcome: Outcome) -> None:
    gateway = {"parentRef": {"name": "g"}, "provider": provider, "ownPath": own_path}
    result = verdict(gateway_provider, resource(router={"gateway": gateway}))
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "EveryPathPasses", "/metrics", "hostnames")
