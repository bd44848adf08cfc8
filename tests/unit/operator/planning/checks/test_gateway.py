"""Checks of the gateway."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.gateway import (
    gateway_memory,
    gateway_provider,
    other_models,
    picker_callers,
)
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


FIELD = "spec.router.gateway.standalone.resources.limits.memory"


def limited_to(limit: str, **router: str) -> KVCacheTier:
    standalone = {"resources": {"limits": {"memory": limit}}}
    return resource(router={"gateway": {"provider": "standalone", "standalone": standalone}, **router})


def test_it_has_memory_for_bodies_unless_somebody_says_less() -> None:
    says(verdict(gateway_memory, resource()), PASS, "Passed", "runs no gateway")
    alone = resource(router={"gateway": {"provider": "standalone"}, "flavor": "llm-d"})
    says(verdict(gateway_memory, alone), PASS, "Passed", "1Gi; bodies go through it in parts")
    # 90 % are 90 MiB: three times 8 MiB beside Envoy itself
    says(verdict(gateway_memory, limited_to("100Mi", flavor="builtin")), PASS, "Passed", "8.67 MiB")


def test_one_that_refuses_the_largest_bodies_is_said() -> None:
    result = verdict(gateway_memory, limited_to("90Mi", flavor="builtin"))
    says(
        result,
        WARN,
        "GatewayMemoryShort",
        "90Mi leaves a heap of 81 MiB",
        "88 MiB with one body of 8 MiB",
    )
    assert result.field == FIELD
    large = verdict(gateway_memory, limited_to("143Mi", flavor="builtin", maxBodySize="256Mi"))
    says(large, WARN, "GatewayMemoryShort", "832 MiB with one body of 256 MiB")
    # others' pickers get it in parts
    says(verdict(gateway_memory, limited_to("100Mi", flavor="llm-d")), PASS, "Passed")


def test_one_that_takes_no_request_is_refused() -> None:
    for limit, heap in (("0", "0 B"), ("64Mi", "57.60 MiB")):
        result = verdict(gateway_memory, limited_to(limit))
        expected = f"{limit} leaves a heap of {heap}, and Envoy takes some 64 MiB by itself: raise it"
        says(result, REJECT, "GatewayMemoryShort", expected)
        assert result.field == FIELD


OTHER = {"name": "Qwen/Qwen3-8B", "resource": "qwen3-8b"}


def sending_to(*models: dict[str, Any]) -> KVCacheTier:
    return resource(router={"gateway": {"provider": "standalone", "standalone": {"models": [*models]}}})


def test_models_of_others_are_theirs() -> None:
    says(verdict(other_models, resource()), PASS, "Passed", "no other model")
    says(verdict(other_models, sending_to(OTHER)), PASS, "Passed", "1 of other resources")


def test_what_is_served_here_does_not_go_on() -> None:
    own = sending_to()
    name, model = own.metadata.name, own.spec.model.name
    result = verdict(
        other_models, sending_to(OTHER, {"name": model, "resource": "x"}, {"name": "y", "resource": name})
    )
    says(
        result,
        REJECT,
        "ModelServedHere",
        f"{model} is served here, by this resource",
        f"{name} is this resource",
    )
    assert result.field == "spec.router.gateway.standalone.models[1].name"
    assert "models[2].resource" in result.message


def test_other_names_and_adapters_are_served_here_too() -> None:
    gateway = {"provider": "standalone", "standalone": {"models": [{"name": "sql", "resource": "x"}]}}
    for model in ({"servedNames": ["chat", "sql"]}, {"loraModules": [{"name": "sql", "source": "a/b"}]}):
        one = resource(model_source=model, router={"gateway": gateway})
        says(verdict(other_models, one), REJECT, "ModelServedHere", "sql is served here")


ON = {"enabled": True}


def guarded_by(provider: str | None, policy: dict[str, Any]) -> KVCacheTier:
    gateway = {"gateway": {"parentRef": {"name": "g", "namespace": "edge"}, "provider": provider}}
    return resource(router={**(gateway if provider else {}), "networkPolicy": policy})


@pytest.mark.parametrize("provider", [None, "none", "gke", "istio", "kgateway", "agentgateway"])
def test_nobody_is_shut_out_unless_somebody_asks_for_it(provider: str | None) -> None:
    says(
        verdict(picker_callers, guarded_by(provider, {})),
        PASS,
        "NotAskedFor" if provider in (None, "none", "gke") else "Passed",
    )
    says(verdict(picker_callers, guarded_by(provider, {"enabled": False})), PASS, "NotAskedFor")


@pytest.mark.parametrize("policy", [{}, ON, {"namespaces": ["edge"]}], ids=str)
def test_kvtiers_own_gateway_gets_in(policy: dict[str, Any]) -> None:
    one = resource(router={"gateway": {"provider": "standalone"}, "networkPolicy": policy})
    says(verdict(picker_callers, one), PASS, "Passed", "kvtier's own gateway may ask")


@pytest.mark.parametrize(
    ("provider", "let_in"), [(None, "pods of default alone"), ("none", "pods of default, edge alone")]
)
def test_proxies_that_are_nowhere_known(provider: str | None, let_in: str) -> None:
    result = verdict(picker_callers, guarded_by(provider, ON))
    says(result, WARN, "GatewayMayBeShutOut", let_in, "9002", "envoy-gateway-system", "ipBlocks")
    assert result.field == "spec.router.networkPolicy.namespaces"


@pytest.mark.parametrize("policy", [ON, {"namespaces": ["edge"]}, ON | {"namespaces": ["edge"]}], ids=str)
def test_no_namespace_has_the_proxies_of_gke(policy: dict[str, Any]) -> None:
    result = verdict(picker_callers, guarded_by("gke", policy))
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
    says(verdict(picker_callers, guarded_by(provider, policy)), PASS, "Passed", "may ask")
