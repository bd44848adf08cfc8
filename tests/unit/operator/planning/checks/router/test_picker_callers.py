from typing import Any

import pytest
from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.gateway import picker_callers

ON = {"enabled": True}


def of(provider: str | None, policy: dict[str, Any]) -> KVCacheTier:
    gateway = {"gateway": {"parentRef": {"name": "g", "namespace": "edge"}, "provider": provider}}
    return resource(router={**(gateway if provider else {}), "networkPolicy": policy})


@pytest.mark.parametrize("provider", [None, "none", "gke", "istio", "kgateway", "agentgateway"])
def test_nobody_is_shut_out_unless_somebody_asks_for_it(provider: str | None) -> None:
    says(
        verdict(picker_callers, of(provider, {})),
        PASS,
        "NotAskedFor" if provider in (None, "none", "gke") else "Passed",
    )
    says(verdict(picker_callers, of(provider, {"enabled": False})), PASS, "NotAskedFor")


@pytest.mark.parametrize("policy", [{}, ON, {"namespaces": ["edge"]}], ids=str)
def test_kvtiers_own_gateway_gets_in(policy: dict[str, Any]) -> None:
    one = resource(router={"gateway": {"provider": "standalone"}, "networkPolicy": policy})
    says(verdict(picker_callers, one), PASS, "Passed", "kvtier's own gateway may ask")


@pytest.mark.parametrize(
    ("provider", "let_in"), [(None, "pods of default alone"), ("none", "pods of default, edge alone")]
)
def test_proxies_that_are_nowhere_known(provider: str | None, let_in: str) -> None:
    result = verdict(picker_callers, of(provider, ON))
    says(result, WARN, "GatewayMayBeShutOut", let_in, "9002", "envoy-gateway-system", "ipBlocks")
    assert result.field == "spec.router.networkPolicy.namespaces"


@pytest.mark.parametrize("policy", [ON, {"namespaces": ["edge"]}, ON | {"namespaces": ["edge"]}], ids=str)
def test_no_namespace_has_the_proxies_of_gke(policy: dict[str, Any]) -> None:
    result = verdict(picker_callers, of("gke", policy))
    says(result, WARN, "GatewayMayBeShutOut", "proxy-only subnet", "ipBlocks")
    assert result.field == "spec.router.networkPolicy.ipBlocks"


@pytest.mark.parametrize(
    ("provider", "policy"),
    [
        ("istio", ON),
        ("none", {"namespaces": ["envoy-gateway-system"]}),
        (None, ON | {"namespaces": ["edge"]}),
        ("none", ON | {"ipBlocks": ["10.129.0.0/23"]}),
        ("gke", {"ipBlocks": ["10.129.0.0/23"]}),
    ],
    ids=str,
)
def test_who_is_named_or_known_gets_in(provider: str | None, policy: dict[str, Any]) -> None:
    says(verdict(picker_callers, of(provider, policy)), PASS, "Passed", "may ask")
