"""Pods of engines and stores are taken by a real API server, under Pod Security's strictest level."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from tests.cluster.harness.operator.shipped import RESTRICTED

from kvtier_operator.cli.inputs.load import read_documents
from kvtier_operator.reconcile.apply.diff import matches

OUTPUT = Path(__file__).parents[2] / "unit" / "operator" / "golden" / "output"
NAMESPACE = "rendered-pods"
GOLDEN = ("devices-claimed", "devices-mig", "model-fetched", "model-source-claim", "model-source-image")
"""Golden resources whose engines have what no other has."""


@pytest.fixture(scope="module", autouse=True)
def namespace(api: client.ApiClient) -> Iterator[None]:
    core = client.CoreV1Api(api)
    core.create_namespace({"metadata": {"name": NAMESPACE, "labels": RESTRICTED}})
    yield
    core.delete_namespace(NAMESPACE)


def _pod(api: client.ApiClient, name: str, component: str) -> dict[str, Any]:
    """The spec of a pod of that component, whose service account is there."""
    deployment, *_ = [
        document
        for document in read_documents((OUTPUT / name / "objects.yaml").read_text(), name)
        if isinstance(document, dict)
        and document["kind"] == "Deployment"
        and document["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    metadata = {"name": pod.get("serviceAccountName", "default")}
    client.CoreV1Api(api).create_namespaced_service_account(NAMESPACE, {"metadata": metadata})
    return pod


@pytest.mark.parametrize(
    ("name", "component"), [*((name, "engine") for name in GOLDEN), ("kvtier-sharded-store", "store")]
)
def test_a_pod_is_taken_as_it_is(api: client.ApiClient, name: str, component: str) -> None:
    sent = _pod(api, name, component)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": sent}
    taken = client.CoreV1Api(api).create_namespaced_pod(
        NAMESPACE, body, dry_run="All", field_validation="Strict"
    )
    live = api.sanitize_for_serialization(taken)["spec"]
    assert {field for field in sent if not matches(live.get(field), sent[field], field)} == set()
    # nothing of a field that the server does not know, which it would leave out
    assert len(live["volumes"]) == len(sent["volumes"])
