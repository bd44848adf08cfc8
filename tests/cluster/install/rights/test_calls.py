"""What the operator asks of the API server in all that it does, and its rules: neither has more."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from tests.cases.rights import Right, rights
from tests.cluster.attach.shapes import tier
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.control_plane.audit import Asked, requests_of
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, OPERATOR, SYSTEM
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually

from kvtier_operator.install.rbac import CLUSTER, LEADER_ELECTION, NAMESPACED
from kvtier_operator.planning.base.names import COMPONENT_LABEL, INSTANCE_LABEL, Component
from kvtier_operator.reconcile.api_server import KINDS, Kind

# Google publishes no CRDs to install; what the operator asks about an object does not depend on its fields.
UNPUBLISHED = [
    kind for kind in KINDS if kind.api_version.split("/")[0].endswith(("gke.io", "googleapis.com"))
]
PROVIDERS = ("istio", "gke")
SCALERS = {"istio": {}, "gke": {"prometheusUrl": "http://prometheus.monitoring"}}
"""What each of them scales with: a HorizontalPodAutoscaler, a ScaledObject."""


def resource(provider: str) -> dict[str, Any]:
    """One that has every kind of object that this provider can need."""
    return {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": provider},
        "spec": {
            "model": {"name": "Qwen/Qwen3-32B"},
            "autoscaling": {"maxReplicas": 2, **SCALERS[provider]},
            "engine": {"tensorParallelSize": 2, "gpuMemory": "80Gi"},
            "tiers": {"cpu": {"capacity": "100Gi"}},
            "router": {"gateway": {"parentRef": {"name": "front"}, "provider": provider}},
            "observability": {"serviceMonitor": True, "prometheusRule": True, "dashboard": True},
        },
    }


@pytest.mark.usefixtures("clean_system", "gke_kinds")
def test_every_call_has_its_rule_and_every_rule_its_call(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    helm("install", "kvtier", CHART, "--namespace", SYSTEM)
    before = len([*requests_of(site.audit_log, SYSTEM, OPERATOR)])
    place = ("--namespace", namespace)
    with run_installed(site, kubectl, tmp_path):
        listed = {"apiVersion": "v1", "kind": "List", "items": [resource(provider) for provider in PROVIDERS]}
        kubectl("apply", *place, "--filename", "-", stdin=json.dumps(listed))
        made = eventually(lambda: _of_every_kind(kubectl, namespace), "objects of every kind")

        attaching = tier(podSelector={"matchLabels": {"app": "vllm"}})
        kubectl("apply", *place, "--filename", "-", stdin=json.dumps(attaching))

        # engines are ready, as their kubelets say: one of each resource is asked what its tiers hold
        eventually(lambda: _ready(kubectl, namespace), "engines of both resources")
        eventually(
            lambda: any(
                each.right[1] == "replicasets" for each in requests_of(site.audit_log, SYSTEM, OPERATOR)
            ),
            "that the operator makes sure whose engines they are",
        )

        # someone takes one of them away, which makes it ask whether the resource is still there
        kubectl("delete", "service", "istio-engine", *place)
        eventually(
            lambda: kubectl("get", "service", "istio-engine", *place, "--ignore-not-found"), "that Service"
        )

        # an earlier release named its objects in another way
        earlier = [_rename(each) for each in made]
        stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": earlier})
        kubectl("create", *place, "--filename", "-", stdin=stream)
        names = [f"{each['kind']}.{_suffix(each)}/{each['metadata']['name']}" for each in earlier]
        eventually(
            lambda: not kubectl("get", *names, *place, "--ignore-not-found", "--output", "name"),
            "end of what an earlier release made",
        )
    calls = [*requests_of(site.audit_log, SYSTEM, OPERATOR)][before:]
    assert [str(call) for call in calls if call.refused] == []
    assert _used_rights(calls) == set(rights((*NAMESPACED, *CLUSTER, *LEADER_ELECTION)))


@pytest.fixture(scope="module")
def gke_kinds(site_api: client.ApiClient) -> None:
    for kind in UNPUBLISHED:
        install(site_api, _definition(kind))


def _used_rights(calls: Iterable[Asked]) -> set[Right]:
    """The rights that the operator's role had to give for these."""
    own = [call for call in calls if OPERATOR in call.why]
    created = {(*each.right[:2], "create") for each in own if each.created}
    return created | {each.right for each in own}


def _of_every_kind(kubectl: Command, namespace: str) -> list[dict[str, Any]]:
    """One object of each kind there is; empty as long as one is missing."""
    chosen = ("--namespace", namespace, "--selector", INSTANCE_LABEL)
    kinds = ",".join(f"{kind.plural}.{kind.api_version.rpartition('/')[0]}".rstrip(".") for kind in KINDS)
    found = {item["kind"]: item for item in kubectl.json("get", kinds, *chosen)["items"]}
    return [*found.values()] if len(found) == len(KINDS) else []


def _ready(kubectl: Command, namespace: str) -> bool:
    """Says of all pods of engines there are what a kubelet would; whether these are all that are wanted."""
    chosen = ("--namespace", namespace, "--selector", f"{COMPONENT_LABEL}={Component.ENGINE}")
    pods = kubectl.json("get", "pods", *chosen)["items"]
    status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    status |= {"conditions": [{"type": "Ready", "status": "True"}]}
    for pod in pods:
        place = (pod["metadata"]["name"], "--namespace", namespace, "--subresource", "status")
        kubectl("patch", "pod", *place, "--type", "merge", "--patch", json.dumps({"status": status}))
    return len(pods) == len(PROVIDERS)


def _rename(document: dict[str, Any]) -> dict[str, Any]:
    """The same object under another name: its owner and labels are the same."""
    kept = {key: document["metadata"][key] for key in ("labels", "ownerReferences")}
    copied = {key: value for key, value in document.items() if key != "status"}
    if copied["kind"] == "Service":
        copied["spec"] = {key: value for key, value in copied["spec"].items() if "lusterIP" not in key}
    return copied | {"metadata": kept | {"name": f"earlier-{document['metadata']['name']}"}}


def _suffix(document: dict[str, Any]) -> str:
    group, _, version = document["apiVersion"].rpartition("/")
    return f"{version}.{group}"


def _definition(kind: Kind) -> dict[str, Any]:
    """A CRD of that name whose objects may hold anything."""
    group, _, version = kind.api_version.rpartition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }
