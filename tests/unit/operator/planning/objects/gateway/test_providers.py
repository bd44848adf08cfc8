from typing import Any

import pytest
from tests.unit.operator.planning.backends.planned import resource

from kvtier_operator.api.spec.router import GatewayProvider
from kvtier_operator.planning.objects.gateway.providers import PROVIDERS
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan


def beside_the_route(provider: str) -> tuple[dict[str, Any], ...]:
    gateway = {"parentRef": {"name": "g"}, "provider": provider}
    changes = {"spec.router.gateway": gateway, "metadata.namespace": "serving", "spec.engine.port": 5555}
    return PROVIDERS[GatewayProvider(provider)].objects(make_plan(resource(changes), Observed()))


def test_every_provider_is_registered() -> None:
    assert set(PROVIDERS) == set(GatewayProvider)


@pytest.mark.parametrize("provider", ["none", "kgateway", "agentgateway"])
def test_some_need_nothing(provider: str) -> None:
    assert beside_the_route(provider) == ()


def test_istio_takes_the_pickers_own_certificate_whatever_the_clusters_domain() -> None:
    [rule] = beside_the_route("istio")
    assert rule["kind"] == "DestinationRule"
    assert rule["metadata"]["namespace"] == "serving"
    assert rule["spec"]["host"] == "qwen3-32b-picker"
    assert rule["spec"]["trafficPolicy"]["tls"] == {"mode": "SIMPLE", "insecureSkipVerify": True}


def test_gke_checks_the_engines_port_and_lets_answers_stream() -> None:
    health, backend = beside_the_route("gke")
    pool = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "qwen3-32b"}
    assert health["spec"]["targetRef"] == backend["spec"]["targetRef"] == pool
    assert health["spec"]["default"]["config"]["httpHealthCheck"] == {"requestPath": "/health", "port": 5555}
    assert backend["spec"]["default"] == {"timeoutSec": 3600}
