"""What changes where the engines serve HTTPS, which their own arguments say."""

import pytest
import yaml
from tests.unit.operator.planning.objects.built import Object, engine_container, objects, one, pod

TLS: dict[str, object] = {
    "spec.engine.extraArgs": ["--ssl-certfile", "/tls/tls.crt", "--ssl-keyfile", "/tls/tls.key"],
    "spec.router.flavor": "gaie",
}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@pytest.mark.parametrize("probe", PROBES)
def test_probes_ask_as_the_engine_answers(probe: str) -> None:
    plain = {"path": "/health", "port": "http"}
    assert engine_container({})[probe]["httpGet"] == plain
    assert engine_container(TLS)[probe]["httpGet"] == plain | {"scheme": "HTTPS"}


def test_the_service_says_so() -> None:
    [plain] = one(objects({}), "Service", "engine")["spec"]["ports"]
    [port] = one(objects(TLS), "Service", "engine")["spec"]["ports"]
    assert port == plain | {"appProtocol": "https"}


def endpoint(changes: dict[str, object], kind: str, component: str) -> Object:
    monitored = {"spec.observability.serviceMonitor": True}
    [found] = one(objects(changes | monitored), kind, component)["spec"]["endpoints"]
    asked: Object = found
    return asked


def test_prometheus_asks_engines_so_and_pickers_as_ever() -> None:
    plain = endpoint({}, "ServiceMonitor", "engine")
    https = {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    assert endpoint(TLS, "ServiceMonitor", "engine") == plain | https
    assert endpoint(TLS, "ServiceMonitor", "picker") == endpoint({}, "ServiceMonitor", "picker")
    gke: dict[str, object] = {"spec.router.gateway": {"parentRef": {"name": "g"}, "provider": "gke"}}
    https = {"scheme": "https", "tls": {"insecureSkipVerify": True}}
    assert endpoint(TLS | gke, "PodMonitoring", "engine") == plain | https
    [check] = [document for document in objects(TLS | gke) if document["kind"] == "HealthCheckPolicy"]
    asked = {"requestPath": "/health", "port": 8000}
    assert check["spec"]["default"]["config"] == {"type": "HTTPS", "httpsHealthCheck": asked}


def test_pickers_of_others_scrape_so() -> None:
    argument = "--model-server-metrics-scheme=https"
    [gaie] = pod(TLS, "picker")["containers"]
    assert argument in gaie["args"]
    llm_d = TLS | {"spec.router.flavor": "llm-d"}
    [container] = pod(llm_d, "picker")["containers"]
    assert argument not in container["args"], "0.10 no longer has it"
    [text] = one(objects(llm_d), "ConfigMap", "picker")["data"].values()
    source = {"type": "metrics-data-source", "parameters": {"scheme": "https"}}
    assert source in yaml.safe_load(text)["plugins"]
    [text] = one(objects({}), "ConfigMap", "picker")["data"].values()
    assert "metrics-data-source" not in text
