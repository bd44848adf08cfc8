"""What an operator makes for a tenant with `edit` alone: rows of docs/operations/rbac.md."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.install.running import run_installed as running
from tests.cluster.install.trust.tenants import Person, may, tier, write
from tests.shared.waiting import eventually

ROWS = {"objects", "pool", "picker-role", "enter", "name-taken"}
_RBAC = "rbac.authorization.k8s.io/v1"
POOL = {
    "selector": {"matchLabels": {"app": "theirs"}},
    "targetPorts": [{"number": 8000}],
    "endpointPickerRef": {"name": "theirs", "port": {"number": 9002}},
}
FOREIGN: dict[str, dict[str, Any]] = {
    "inferencepool": {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "spec": POOL},
    "role": {
        "apiVersion": _RBAC,
        "kind": "Role",
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    },
    "rolebinding": {
        "apiVersion": _RBAC,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "theirs", "apiGroup": "rbac.authorization.k8s.io"}],
    },
    "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"theirs": "yes"}},
}
"""Somebody's, of the name of an object that the operator would make."""


def test_what_is_made_is_no_more_than_edit_has(  # noqa: PLR0913, PLR0917 - fixtures
    site: ControlPlane,
    site_api: client.ApiClient,
    kubectl: Command,
    namespace: str,
    person: Person,
    tmp_path: Path,
) -> None:
    """Rows objects, pool, picker-role, enter."""
    tenant = person("edit")
    write(kubectl, namespace, tenant, tier({"router": {"replicas": 2}, "observability": {"dashboard": True}}))
    with running(site, kubectl, tmp_path):
        eventually(lambda: "Deployment" in _made(kubectl, namespace), "objects")
        eventually(lambda: "InferencePool" in _made(kubectl, namespace), "the pool")
    more = {
        kind
        for kind, right in _made(kubectl, namespace).items()
        if not may(site_api, namespace, tenant, right)
    }
    assert more == {"InferencePool", "Role", "RoleBinding"}

    pool = kubectl.json("get", "inferencepool", "asks", "--namespace", namespace)["spec"]
    assert pool["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "asks"
    assert pool["endpointPickerRef"]["name"] == "asks-picker"

    rules = kubectl.json("get", "role", "asks-picker", "--namespace", namespace)["rules"]
    gained = {
        right
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if not may(site_api, namespace, tenant, right := f"{verb} {resource}.{group}")
    }
    assert {right.split()[1] for right in gained} == {
        "inferencepools.inference.networking.k8s.io",
        "inferenceobjectives.inference.networking.x-k8s.io",
        "inferencemodelrewrites.inference.networking.x-k8s.io",
        "inferenceobjectives.llm-d.ai",
        "inferencemodelrewrites.llm-d.ai",
    }
    assert {right.split()[0] for right in gained} == {"get", "list", "watch"}

    for right in ("create pods./exec", "patch deployments.apps", "impersonate serviceaccounts."):
        assert may(site_api, namespace, tenant, right)


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_object_of_the_name_stays_as_it_is(  # noqa: PLR0913, PLR0917 - fixtures
    site: ControlPlane, kubectl: Command, namespace: str, person: Person, tmp_path: Path, kind: str
) -> None:
    """Row name-taken."""
    name = "asks" if kind == "inferencepool" else "asks-picker"
    at = ("--namespace", namespace)
    theirs = FOREIGN[kind] | {"metadata": {"name": name}}
    kubectl("create", *at, "--filename", "-", stdin=json.dumps(theirs))
    before = kubectl.json("get", kind, name, *at)
    write(kubectl, namespace, person("edit"), tier({}))
    with running(site, kubectl, tmp_path):
        eventually(lambda: "NameTaken" in _reasons(kubectl, namespace), "NameTaken")
    assert kubectl.json("get", kind, name, *at) == before


def _made(kubectl: Command, namespace: str) -> dict[str, str]:
    """Kinds of the objects that the resource owns, each with the right to create one."""
    kinds = {
        "ServiceAccount": "serviceaccounts.",
        "ConfigMap": "configmaps.",
        "Service": "services.",
        "Role": "roles.rbac.authorization.k8s.io",
        "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
        "PodDisruptionBudget": "poddisruptionbudgets.policy",
        "Deployment": "deployments.apps",
        "InferencePool": "inferencepools.inference.networking.k8s.io",
        "NetworkPolicy": "networkpolicies.networking.k8s.io",
        "HTTPRoute": "httproutes.gateway.networking.k8s.io",
        "ServiceMonitor": "servicemonitors.monitoring.coreos.com",
        "PrometheusRule": "prometheusrules.monitoring.coreos.com",
    }
    listed = kubectl.json(
        "get", ",".join(kind.strip(".") for kind in kinds.values()), "--namespace", namespace
    )
    return {
        item["kind"]: f"create {kinds[item['kind']]}"
        for item in listed["items"]
        if any(owner["kind"] == "KVCacheTier" for owner in item["metadata"].get("ownerReferences", ()))
    }


def _reasons(kubectl: Command, namespace: str) -> set[str]:
    status = kubectl.json("get", "kvct", "asks", "--namespace", namespace).get("status", {})
    return {condition["reason"] for condition in status.get("conditions", ())}
