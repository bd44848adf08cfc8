"""What a tenant gets by a KVCacheTier, on the real API server: the first table of docs/operations/rbac.md."""

from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command
from tests.cluster.install.trust.tenants import CPU, DISK, HOST_PATH, Person, make, refusal, tier

from kvtier_operator.install.admission import PRIVILEGES

PARENT = {"parentRef": {"name": "public"}}
ASKED: dict[str, dict[str, Any]] = {
    "scaled-object": {"autoscaling": {"maxReplicas": 8, "prometheusUrl": "http://prometheus.monitoring"}},
    "host-path-model": {"model": {"name": "Qwen/Qwen3-32B", "volume": HOST_PATH}},
    "host-path-source": {"model": {"name": "Qwen/Qwen3-32B", "source": "file:///srv/models/qwen3"}},
    "host-path-disk": DISK,
    "host-path-disks": {
        "backend": "LMCache",
        "tiers": {
            "cpu": CPU,
            "disk": {"capacity": "1Gi", "volume": {"emptyDir": {}}, "extraVolumes": [HOST_PATH]},
        },
    },
    "ipc-lock": {"tiers": {"cpu": CPU | {"memlock": {"policy": "Require"}}}},
    "route": {"router": {"gateway": PARENT | {"hostnames": ["bank.example"]}}},
    "foreign-gateway": {"router": {"gateway": {"parentRef": {"name": "public", "namespace": "kube-public"}}}},
    "istio-rule": {"router": {"gateway": PARENT | {"provider": "istio"}}},
    "gke-policy": {"router": {"gateway": PARENT | {"provider": "gke"}}},
    "gke-health-check": {"router": {"gateway": PARENT | {"provider": "gke"}}},
    "service-monitor": {"observability": {"serviceMonitor": True}},
    "pod-monitoring": {
        "observability": {"serviceMonitor": True},
        "router": {"gateway": PARENT | {"provider": "gke"}},
    },
    "prometheus-rule": {"observability": {"prometheusRule": True}},
}
"""What each row adds to a resource that anybody may make; `pods` is that resource itself."""
TEMPLATES: dict[str, dict[str, Any]] = {
    "engine-template": {"engine": {"podTemplate": {"spec": {"serviceAccountName": "theirs"}}}},
    "picker-template": {"router": {"podTemplate": {"metadata": {"labels": {"a": "b"}}}}},
    "gateway-template": {
        "router": {"gateway": {"provider": "standalone", "standalone": {"podTemplate": {}}}}
    },
    "attach": {"attach": {"podSelector": {"matchLabels": {"app": "vllm"}}, "container": "main"}},
}
"""What `edit` may do by itself, and the right to have pods made alone may not."""
ROWS = {"pods", "first", *ASKED, *TEMPLATES}
PRIVILEGE = {privilege.id: privilege for privilege in PRIVILEGES}


@pytest.mark.parametrize("row", ASKED)
def test_what_edit_cannot_do_is_refused(kubectl: Command, namespace: str, person: Person, row: str) -> None:
    others = {f"create {PRIVILEGE[each].creatable}" for each in _within(row) - {row}}
    if row == "foreign-gateway":
        others = {"use kvcachetiers.kvtier.dev/routes"}
    said = refusal(kubectl, namespace, person("edit", *others), tier(ASKED[row]))
    assert f"denied request: {PRIVILEGE[row].field}: " in said
    assert f"'use' on kvcachetiers.kvtier.dev/{PRIVILEGE[row].name}" in said


@pytest.mark.parametrize("row", ASKED)
def test_the_right_to_use_is_enough(kubectl: Command, namespace: str, person: Person, row: str) -> None:
    rights = {f"use kvcachetiers.kvtier.dev/{PRIVILEGE[each].name}" for each in _within(row)}
    make(kubectl, namespace, person("edit", *rights), tier(ASKED[row]))


@pytest.mark.parametrize("row", [row for row in ASKED if PRIVILEGE[row].creatable])
def test_the_right_to_make_the_object_is_enough(
    kubectl: Command, namespace: str, person: Person, row: str
) -> None:
    rights = {f"create {PRIVILEGE[each].creatable}" for each in _within(row)}
    make(kubectl, namespace, person("edit", *rights), tier(ASKED[row]))


def test_one_right_is_not_another(kubectl: Command, namespace: str, person: Person) -> None:
    someone = person("edit", "use kvcachetiers.kvtier.dev/routes", "use kvcachetiers.kvtier.dev/ipclock")
    assert "parentRef.namespace: " in refusal(kubectl, namespace, someone, tier(ASKED["foreign-gateway"]))
    assert "hostPath: " in refusal(kubectl, namespace, someone, tier(ASKED["host-path-disk"]))


def test_one_thing_at_a_time_is_refused(kubectl: Command, namespace: str, person: Person) -> None:
    """In the order of the table: the API server passes on the first refusal of a policy."""
    disk, lock = DISK["tiers"], ASKED["ipc-lock"]["tiers"]
    rest = ASKED["foreign-gateway"] | ASKED["service-monitor"] | ASKED["prometheus-rule"]
    everything = tier(
        rest | {"observability": {"serviceMonitor": True, "prometheusRule": True}, "tiers": disk | lock}
    )
    told = []
    rights: list[str] = []
    for privilege in ("hostpath", "ipclock", "routes", "foreigngateways", "monitoring"):
        said = refusal(kubectl, namespace, person("edit", *rights), everything)
        assert said.count("denied request: ") == 1
        told.append(said.partition("denied request: ")[2].partition(": ")[0])
        rights.append(f"use kvcachetiers.kvtier.dev/{privilege}")
    make(kubectl, namespace, person("edit", *rights), everything)
    assert told == [
        PRIVILEGE[row].field
        for row in ("host-path-disk", "ipc-lock", "route", "foreign-gateway", "service-monitor")
    ]


def test_who_may_make_no_pods_gets_none_made(kubectl: Command, namespace: str, person: Person) -> None:
    """Row pods."""
    write = "create kvcachetiers.kvtier.dev"
    said = refusal(kubectl, namespace, person("", write), tier({}))
    assert "denied request: spec: " in said
    assert "'create' on deployments.apps" in said
    make(kubectl, namespace, person("", write, "create deployments.apps"), tier({}))
    make(kubectl, namespace, person("", write, "use kvcachetiers.kvtier.dev/workloads"), tier({}))


@pytest.mark.parametrize("row", TEMPLATES)
def test_what_changes_pods_takes_more_than_the_right_to_have_some_made(
    kubectl: Command, namespace: str, person: Person, row: str
) -> None:
    """Rows engine-template, picker-template, attach."""
    pods = ("create kvcachetiers.kvtier.dev", "use kvcachetiers.kvtier.dev/workloads")
    said = refusal(kubectl, namespace, person("", *pods), tier(TEMPLATES[row]))
    assert f"denied request: {PRIVILEGE[row].field}: " in said
    used = f"use kvcachetiers.kvtier.dev/{PRIVILEGE[row].name}"
    assert f"'use' on {used.removeprefix('use ')}" in said
    for right in (used, f"create {PRIVILEGE[row].creatable}"):
        make(kubectl, namespace, person("", *pods, right), tier(TEMPLATES[row]))
    make(kubectl, namespace, person("edit"), tier(TEMPLATES[row]))


def test_what_edit_can_do_by_itself_passes(kubectl: Command, namespace: str, person: Person) -> None:
    """Row first."""
    env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    engine = {"image": "x/y:1", "extraArgs": ["--seed", "1"], "env": env, "priorityClassName": "p"}
    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    model = {"name": "Qwen/Qwen3-32B", "volume": claim}
    asked = {"engine": engine, "model": model, "observability": {"dashboard": True}}
    make(kubectl, namespace, person("edit"), tier(asked))


def _within(row: str) -> set[str]:
    """The rows that have to be allowed for one of them, which asks for the others as well."""
    gateway = ASKED[row].get("router", {}).get("gateway")
    gke = gateway is not None and gateway.get("provider") == "gke"
    return {row, *(["route"] if gateway else []), *(["gke-policy", "gke-health-check"] if gke else [])}
