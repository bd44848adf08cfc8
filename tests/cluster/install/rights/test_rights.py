"""What the installed service account may do, asked of the API server's own authorizer."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from tests.cases.rights import Right, rights
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, OPERATOR, ROOT, SYSTEM
from tests.cluster.install.rights.authorizer import may

from kvtier_operator.cli.inputs.load import read_documents
from kvtier_operator.install.rbac import EVERYTHING

GOLDEN = sorted((ROOT / "tests" / "unit" / "operator" / "golden" / "output").glob("*/objects.yaml"))
UNPUBLISHED = {"networking.gke.io/v1", "monitoring.googleapis.com/v1"}
NEVER = [
    ("", "secrets", "get"),
    ("", "secrets", "list"),
    ("", "secrets", "watch"),
    ("", "pods", "create"),
    ("", "pods", "delete"),
    ("", "pods/exec", "create"),
    ("", "pods/exec", "get"),
    ("", "nodes", "patch"),
    ("", "namespaces", "delete"),
    ("", "serviceaccounts/token", "create"),
    ("kvtier.dev", "kvcachetiers", "patch"),
    ("kvtier.dev", "kvcachetiers/finalizers", "update"),
    ("rbac.authorization.k8s.io", "clusterroles", "create"),
    ("rbac.authorization.k8s.io", "roles", "escalate"),
    ("rbac.authorization.k8s.io", "roles", "bind"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get"),
]


@pytest.fixture(scope="module")
def installed(helm: Command, system: str) -> None:
    """An operator for the whole cluster."""
    helm("install", "kvtier", CHART, "--namespace", system)


@pytest.mark.usefixtures("installed")
def test_it_may_what_it_must(site_api: client.ApiClient) -> None:
    needed = rights(EVERYTHING)
    assert [right for right in needed if not may(site_api, right)] == []


@pytest.mark.parametrize("right", NEVER, ids=" ".join)
@pytest.mark.usefixtures("installed")
def test_it_may_not(site_api: client.ApiClient, right: Right) -> None:
    assert not may(site_api, right)
    assert not may(site_api, right, namespace=SYSTEM)


@pytest.mark.usefixtures("installed")
def test_it_may_write_what_plans_have(as_operator: Command, kubectl: Command) -> None:
    """Roles and their bindings among them: the API server lets nobody grant what they do not hold."""
    documents = [
        document
        for path in GOLDEN
        for document in read_documents(path.read_text(), str(path))
        if isinstance(document, dict) and document["apiVersion"] not in UNPUBLISHED
    ]
    for name in {document["metadata"]["namespace"] for document in documents} - {"default"}:
        kubectl("create", "namespace", name)
    # a binding to a role that is not there is refused: the roles are made, the rest only tried
    _apply(as_operator, [document for document in documents if document["kind"] == "Role"])
    _apply(as_operator, documents, "--dry-run=server")


@pytest.mark.usefixtures("installed")
def test_it_cannot_grant_more_than_it_has(as_operator: Command) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "greedy", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    with pytest.raises(CommandError, match="attempting to grant RBAC permissions not currently held"):
        _apply(as_operator, [role])


@pytest.fixture
def as_operator(site: ControlPlane, kubectl: Command, tmp_path: Path) -> Command:
    """kubectl with the operator's own token."""
    return Command(kubectl.program, site.kubeconfig_for_service_account(SYSTEM, OPERATOR, tmp_path), tmp_path)


def _apply(kubectl: Command, documents: list[dict[str, Any]], *options: str) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    kubectl("apply", "--server-side", "--field-manager=kvtier", *options, "--filename", "-", stdin=listed)
