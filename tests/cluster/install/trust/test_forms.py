"""Other ways to ask for the same, on the real API server: rows of docs/operations/rbac.md."""

import json
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import CRD
from tests.cluster.install.trust.tenants import CPU, DISK, HOST_PATH, Person, refusal, tier, write
from tests.shared.waiting import eventually

ROWS = {"apply", "two-steps", "list-item", "other-volume", "generate-name", "status", "long", "older"}
DENIED = r"denied request: spec\.tiers\.disk\.volume\.hostPath: "
TAKEN_OVER = r"denied request: spec\.engine: this resource has a folder of the node, "
EMPTY_DIR: dict[str, Any] = {"tiers": {"cpu": CPU, "disk": {"capacity": "1Gi", "volume": {"emptyDir": {}}}}}
LONG: dict[str, Any] = {
    "engine": {
        "env": [{"name": f"V{number}", "value": "x" * 4000} for number in range(128)],
        "extraArgs": [f"--{number}={'x' * 3000}" for number in range(128)],
        "nodeSelector": {f"label{number}": "x" * 63 for number in range(64)},
        "tolerations": [{"key": f"taint{number}", "value": "x" * 63} for number in range(64)],
        "affinity": {"podAffinity": {f"k{number}": [{"x": "y" * 40}] * 40 for number in range(50)}},
    },
    "imagePullSecrets": [{"name": f"secret{number}"} for number in range(16)],
}
"""About a megabyte; the API server stores one and a half."""


def _patch(kubectl: Command, namespace: str, user: str, type_: str, change: object, *more: str) -> str:
    at = ("--namespace", namespace, "--as", user, *more)
    return kubectl("patch", "kvct", "asks", *at, f"--type={type_}", "--patch", json.dumps(change))


def test_server_side_apply(kubectl: Command, namespace: str, person: Person) -> None:
    """Row apply: making and changing, with the defaults left out."""
    apply = ("apply", "--server-side", "--namespace", namespace, "--as", person("edit"), "--filename", "-")
    with pytest.raises(CommandError, match=DENIED):
        kubectl(*apply, stdin=tier(DISK))
    kubectl(*apply, stdin=tier({}))
    kubectl(*apply, stdin=tier(EMPTY_DIR))
    with pytest.raises(CommandError, match=DENIED):
        kubectl(*apply, stdin=tier(DISK))


def test_two_steps_and_the_parts_of_a_list(kubectl: Command, namespace: str, person: Person) -> None:
    """Rows two-steps, list-item, other-volume."""
    tenant = person("edit")
    volume = "/spec/tiers/disk/volume"
    write(kubectl, namespace, tenant, tier({}))
    with pytest.raises(CommandError, match=DENIED):
        _patch(kubectl, namespace, tenant, "merge", {"spec": DISK})
    two = EMPTY_DIR["tiers"]["disk"] | {"extraVolumes": [{"emptyDir": {}}] * 2}
    asked = {"spec": {"backend": "LMCache", "tiers": {"disk": two}}}
    _patch(kubectl, namespace, tenant, "merge", asked)
    item = {"op": "replace", "path": "/spec/tiers/disk/extraVolumes/1", "value": HOST_PATH}
    with pytest.raises(CommandError, match=r"denied request: spec\.tiers\.disk\.extraVolumes: "):
        _patch(kubectl, namespace, tenant, "json", [item])
    other = [
        {"op": "remove", "path": f"{volume}/emptyDir"},
        {"op": "add", "path": f"{volume}/hostPath", "value": HOST_PATH["hostPath"]},
    ]
    with pytest.raises(CommandError, match=DENIED):
        _patch(kubectl, namespace, tenant, "json", other)
    volume_of = {"tiers": {"disk": {"volume": HOST_PATH | {"emptyDir": None}}}}
    with pytest.raises(CommandError, match=DENIED):
        _patch(kubectl, namespace, tenant, "merge", {"spec": volume_of})
    replaced = json.loads(tier(DISK | {"replicas": 2}))
    live = kubectl.json("get", "kvct", "asks", "--namespace", namespace)
    replaced["metadata"] = live["metadata"]
    at = ("--namespace", namespace, "--as", tenant)
    with pytest.raises(CommandError, match=DENIED):
        kubectl("replace", *at, "--filename", "-", stdin=json.dumps(replaced))


def test_a_name_that_the_server_chooses(kubectl: Command, namespace: str, person: Person) -> None:
    """Row generate-name."""
    document = json.loads(tier(DISK)) | {"metadata": {"generateName": "asks-"}}
    assert "hostPath: " in refusal(kubectl, namespace, person("edit"), json.dumps(document))


def test_subresources_change_nothing_else(kubectl: Command, namespace: str, person: Person) -> None:
    """Row status."""
    tenant = person("edit", "patch kvcachetiers.kvtier.dev/status")
    write(kubectl, namespace, tenant, tier({}))
    change = {"spec": DISK, "status": {"observedGeneration": 1}}
    _patch(kubectl, namespace, tenant, "merge", change, "--subresource=status")
    _patch(kubectl, namespace, tenant, "merge", {"spec": DISK | {"replicas": 2}}, "--subresource=scale")
    spec = kubectl.json("get", "kvct", "asks", "--namespace", namespace)["spec"]
    assert spec["replicas"] == 2
    assert "disk" not in spec["tiers"]
    with pytest.raises(CommandError, match="cannot patch resource"):
        _patch(kubectl, namespace, person("edit"), "merge", change, "--subresource=status")


def test_lists_of_the_greatest_length(kubectl: Command, namespace: str, person: Person) -> None:
    """Row long: the comparison costs the API server no more than it gives an expression."""
    tenant = person("edit")
    assert "denied request: spec.tiers.disk.volume.hostPath: " in refusal(
        kubectl, namespace, tenant, tier(LONG | DISK)
    )
    volumes: dict[str, Any] = {"extraVolumes": [{"emptyDir": {}}] * 15 + [HOST_PATH]}
    disks = {"backend": "LMCache", "tiers": {"cpu": CPU, "disk": EMPTY_DIR["tiers"]["disk"] | volumes}}
    assert "denied request: spec.tiers.disk.extraVolumes: " in refusal(
        kubectl, namespace, tenant, tier(LONG | disks)
    )
    kubectl("create", "--namespace", namespace, "--filename", "-", stdin=tier(LONG | DISK))
    kubectl("label", "kvct", "asks", "a=b", "--namespace", namespace, "--as", tenant)
    changed = [{"op": "replace", "path": "/spec/engine/extraArgs/127", "value": "--other"}]
    with pytest.raises(CommandError, match=TAKEN_OVER):
        _patch(kubectl, namespace, tenant, "json", changed)
    _patch(kubectl, namespace, tenant, "merge", {"spec": {"tiers": {"disk": None}}})


def test_a_resource_of_an_older_shape(kubectl: Command, namespace: str, person: Person) -> None:
    """Row older: stored before a field had its default, it is no change that it has one now."""
    tenant = person("edit")
    whole = kubectl.json("get", CRD)
    older = json.loads(json.dumps(whole))
    whole_spec = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = whole_spec["x-kubernetes-validations"]
    whole_spec["x-kubernetes-validations"] = [
        rule for rule in rules if ".tiers.cpu" not in rule.get("fieldPath", "")
    ]
    spec = whole_spec["properties"]
    del spec["engine"]["default"], spec["router"]["default"], spec["tiers"]["properties"]["cpu"]
    spec["tiers"]["x-kubernetes-preserve-unknown-fields"] = True
    spec["tiers"]["required"] = []
    make = ("create", "--namespace", namespace, "--filename", "-")

    def has_defaults() -> bool:
        tried = json.loads(tier({})) | {"metadata": {"generateName": "asks-"}}
        answer = json.loads(kubectl(*make, "--dry-run=server", "--output=json", stdin=json.dumps(tried)))
        return "engine" in answer["spec"]

    try:
        _change_crd(kubectl, older)
        eventually(lambda: not has_defaults(), "the older schema")
        kubectl(*make, stdin=tier(DISK))
    finally:
        _change_crd(kubectl, whole)
    eventually(has_defaults, "the schema of today")
    kubectl("label", "kvct", "asks", "a=b", "--namespace", namespace, "--as", tenant)
    _patch(kubectl, namespace, tenant, "merge", {"spec": {"replicas": 2}})
    with pytest.raises(CommandError, match=TAKEN_OVER):
        _patch(kubectl, namespace, tenant, "merge", {"spec": {"engine": {"image": "evil/x:1"}}})


def _change_crd(kubectl: Command, document: dict[str, Any]) -> None:
    kept = {key: document["metadata"][key] for key in ("name", "labels", "annotations")}
    kubectl("replace", "--filename", "-", stdin=json.dumps(document | {"metadata": kept, "status": {}}))
