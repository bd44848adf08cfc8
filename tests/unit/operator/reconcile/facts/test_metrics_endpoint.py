"""Where the engine of an attached pod is asked for its metrics: as its kubelet asks, else as it says."""

from typing import Any

import pytest

from kvtier_connector.payload import ATTACH_VARIABLE
from kvtier_operator.reconcile.facts.metrics_endpoint import metrics_endpoint

READY = {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
PORTS = [{"name": "api", "containerPort": 8200}, {"name": "tls", "containerPort": 8443}]


def _pod(**container: object) -> dict[str, Any]:
    engine = {"name": "main", "env": [{"name": ATTACH_VARIABLE, "value": "{}"}], **container}
    return {"spec": {"containers": [{"name": "proxy", "ports": [{"containerPort": 1}]}, engine]}}


def _probe(port: object, **more: str) -> dict[str, Any]:
    return {"httpGet": {"path": "/health", "port": port, **more}}


@pytest.mark.parametrize(
    ("container", "address"),
    [
        ({}, "http://10.0.0.1:8000"),
        ({"ports": PORTS}, "http://10.0.0.1:8200"),
        ({"ports": PORTS, "readinessProbe": _probe(8001)}, "http://10.0.0.1:8001"),
        ({"ports": PORTS, "readinessProbe": _probe("tls", scheme="HTTPS")}, "https://10.0.0.1:8443"),
        ({"ports": PORTS, "readinessProbe": _probe("not there")}, "http://10.0.0.1:8200"),
        ({"ports": PORTS, "readinessProbe": {"exec": {"command": ["true"]}}}, "http://10.0.0.1:8200"),
    ],
)
def test_the_probe_s_port_then_the_first_then_vllm_s(container: dict[str, Any], address: str) -> None:
    endpoint = metrics_endpoint(_pod(**container))
    assert endpoint
    assert (endpoint.container, endpoint.address_in(READY)) == ("main", address)


def test_a_pod_that_is_not_ready_is_not_asked() -> None:
    endpoint = metrics_endpoint(_pod())
    assert endpoint
    assert endpoint.address_in({**READY, "conditions": [{"type": "Ready", "status": "False"}]}) == ""
    assert endpoint.address_in({**READY, "podIP": "fd00::1"}) == "http://[fd00::1]:8000"


def test_a_pod_that_was_given_no_tier_has_no_endpoint() -> None:
    assert metrics_endpoint(_pod(env=[])) is None
