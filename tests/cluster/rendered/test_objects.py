"""What kvtier renders is taken by a real API server, unknown fields and all, for every golden resource."""

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, dynamic
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers
from tests.cluster.harness.programs.modules import published_crds

from kvtier_operator.cli.inputs.load import read_documents

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "unit" / "operator" / "golden"
EXAMPLES = sorted((ROOT / "docs" / "user-guide" / "examples").glob("*.yaml"))
INPUTS = sorted((GOLDEN / "input").glob("*.yaml"))
JOBS = sorted((GOLDEN / "output").glob("*/bench-job.yaml"))
# Google publishes the CRDs of its gateway and its monitoring in no form that a test can have.
UNPUBLISHED = {"networking.gke.io/v1", "monitoring.googleapis.com/v1"}


@pytest.fixture(scope="module")
def objects(api: client.ApiClient) -> dynamic.DynamicClient:
    """A client for objects of any kind, those of gateway and picker included."""
    for definition in published_crds():
        install(api, definition)
    return dynamic.DynamicClient(api)


def _documents(path: Path) -> list[dict[str, Any]]:
    return [
        document for document in read_documents(path.read_text(), str(path)) if isinstance(document, dict)
    ]


@pytest.fixture(scope="module", autouse=True)
def namespaces(api: client.ApiClient) -> None:
    """The namespaces that the golden resources name."""
    named = {
        document["metadata"].get("namespace", "default") for path in INPUTS for document in _documents(path)
    }
    for name in named - {"default"}:
        client.CoreV1Api(api).create_namespace({"metadata": {"name": name}})


@pytest.mark.parametrize("path", [*INPUTS, *EXAMPLES], ids=lambda path: path.stem)
def test_resource_is_admitted(kvcachetiers: KVCacheTiers, path: Path) -> None:
    for resource in _documents(path):
        kvcachetiers.create(resource, dry_run=True)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_golden_objects_are_admitted(objects: dynamic.DynamicClient, path: Path) -> None:
    rendered = _documents(GOLDEN / "output" / path.stem / "objects.yaml")
    assert rendered
    for document in rendered:
        if document["apiVersion"] not in UNPUBLISHED:
            _apply(objects, document)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.parent.name)
def test_golden_jobs_are_admitted(objects: dynamic.DynamicClient, path: Path) -> None:
    [job] = _documents(path)
    _apply(objects, job)


def test_an_unknown_field_would_be_seen(objects: dynamic.DynamicClient) -> None:
    [deployment, *_] = [
        document
        for document in _documents(GOLDEN / "output" / "minimal" / "objects.yaml")
        if document["kind"] == "Deployment"
    ]
    deployment["spec"]["template"]["spec"]["hugepages"] = True
    with pytest.raises(client.ApiException, match="hugepages"):
        _apply(objects, deployment)


def _apply(objects: dynamic.DynamicClient, rendered: dict[str, Any]) -> None:
    """Applies on the server without keeping the result, as `kubectl apply --server-side --dry-run=server`."""
    objects.server_side_apply(
        objects.resources.get(api_version=rendered["apiVersion"], kind=rendered["kind"]),
        body=rendered,
        name=rendered["metadata"]["name"],
        namespace=rendered["metadata"].get("namespace", "default"),
        field_manager="kvtier-tests",
        force_conflicts=True,
        query_params=[("dryRun", "All"), ("fieldValidation", "Strict")],
    )
