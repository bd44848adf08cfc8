"""Pods that a namespace with Pod Security `restricted` admits, asked of the real admission."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.operator.places import CHART, MANIFESTS, ROOT, SYSTEM

GOLDEN = ROOT / "tests" / "unit" / "operator" / "golden" / "output"
NAMESPACE = "restricted"


@pytest.fixture(scope="module", autouse=True)
def restricted(kubectl: Command) -> Iterator[None]:
    kubectl("create", "namespace", NAMESPACE)
    kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_the_chart_s_operator(site_api: client.ApiClient, helm: Command) -> None:
    rendered = helm("template", "kvtier", CHART, "--namespace", SYSTEM)
    _admitted(site_api, _template(rendered, "kvtier-operator"))


def test_the_manifests_operator(site_api: client.ApiClient) -> None:
    _admitted(site_api, _template((MANIFESTS / "base" / "deployment.yaml").read_text(), "kvtier-operator"))


@pytest.mark.parametrize("component", ["engine", "picker"])
@pytest.mark.parametrize("overlay", ["kvtier", "lmcache", "lmcache-mp", "native"])
def test_engines_and_pickers(site_api: client.ApiClient, overlay: str, component: str) -> None:
    """Nothing of an engine's needs more unless its resource requires memlock or has a hostPath."""
    objects = (MANIFESTS / "static" / overlay / "objects.yaml").read_text()
    _admitted(site_api, _template(objects, f"qwen3-32b-{component}"))


def test_the_namespace_does_refuse(site_api: client.ApiClient) -> None:
    locked = _template((GOLDEN / "hugepages-memlock" / "objects.yaml").read_text(), "pinned-engine")
    with pytest.raises(client.ApiException, match="IPC_LOCK") as refused:
        _admitted(site_api, locked)
    assert "violates PodSecurity" in str(refused.value.body)


def _template(stream: str, name: str) -> dict[str, Any]:
    """The pod of a Deployment."""
    [deployment] = [
        document
        for document in yaml.safe_load_all(stream)
        if document and document["kind"] == "Deployment" and document["metadata"]["name"] == name
    ]
    template: dict[str, Any] = deployment["spec"]["template"]
    return template


def _admitted(api: client.ApiClient, template: dict[str, Any]) -> None:
    account = template["spec"].pop("serviceAccountName")
    core = client.CoreV1Api(api)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": account},
        # the account is not what is asked about
        "spec": template["spec"],
    }
    core.create_namespaced_pod(NAMESPACE, pod, dry_run="All", field_validation="Strict")
