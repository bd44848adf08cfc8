"""From what the last release left to this version and back: what is written, and what restarts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.cases.releases.differences import IMAGE, Change, changes_of, documented_changes
from tests.cases.releases.kept import INSTALL, RESOURCES, Document, KeptRelease, Key, last_release
from tests.cases.releases.present import NAMESPACE, present_install, present_objects, with_owners
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CRD
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually

from kvtier_operator.reconcile.facts.cached_plan import FIELD_MANAGER

_AT: Final = ("--namespace", NAMESPACE)
_DEPLOYMENT: Final = "Deployment"


@pytest.fixture
def release(kubectl: Command, clean_system: str) -> Iterator[KeptRelease]:
    """The last release, installed by kubectl; afterwards only the operator's namespace is left."""
    del clean_system
    found = last_release()
    _install(kubectl, found.text(INSTALL))
    kubectl("create", "namespace", NAMESPACE)
    yield found
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    for text in (found.text(INSTALL), present_install()):
        objects = [document for document in yaml.safe_load_all(text) if document["kind"] != "Namespace"]
        kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=_list_text(objects))


def test_from_the_last_release_and_back(
    site: ControlPlane, kubectl: Command, release: KeptRelease, tmp_path: Path
) -> None:
    """The released operator has done its part when the new one comes: its objects are kept, not its code."""
    kubectl("apply", *_AT, "--filename", "-", stdin=release.text(RESOURCES))
    resources = _resources(kubectl)
    released = release.objects()
    kept = _objects_of(released, resources)
    _apply(kubectl, kept)
    before = eventually(lambda: _rolled_out(kubectl), "ReplicaSets of all Deployments")
    assert len(before) > len(resources)

    # up: the CRD and the operator's objects first, then the operator
    _install(kubectl, present_install())
    assert kubectl.json("get", CRD)["status"]["storedVersions"] == ["v1alpha1"]
    present = present_objects(release.resources())
    changed = {
        key: found
        for key in {*kept, *present}
        if (found := changes_of(key, released.get(key), present.get(key)))
    }
    said = {each for each in documented_changes(release.version) if each.kind != IMAGE}
    assert {change for found in changed.values() for change in found} == said
    with run_installed(site, kubectl, tmp_path) as operator:
        eventually(lambda: _is_settled(kubectl), "a status of every resource")
        kinds = {kind for kind, _ in kept} | {kind for kind, _ in present}
        assert {kind for kind in kinds if operator.writes(kind)} == {kind for kind, _ in changed}
    after = eventually(lambda: _rolled_out(kubectl), "ReplicaSets of all Deployments")
    restarted = {key[1] for key, found in changed.items() if any(map(_is_in_a_pod, found))}
    assert {name for name in before if after[name]["template"] != before[name]["template"]} == restarted
    assert {name for name in before if after[name] != before[name]} == {
        name for kind, name in changed if kind == _DEPLOYMENT
    }
    assert _specs(_resources(kubectl)) == _specs(resources)

    # back: the same way, with the released operator's apply
    _install(kubectl, release.text(INSTALL))
    assert _specs(_resources(kubectl)) == _specs(resources)
    scaled = ("--type=merge", "--patch", '{"spec":{"replicas":3}}', "--dry-run=server")
    kubectl("patch", "kvct", "minimal", *_AT, *scaled)
    _apply(kubectl, kept)
    back = eventually(lambda: _rolled_out(kubectl), "ReplicaSets of all Deployments")
    assert {name: back[name]["template"] for name in back} == {
        name: before[name]["template"] for name in before
    }
    assert {name for name in back if back[name]["ran"] != before[name]["ran"]} == restarted


def _is_in_a_pod(change: Change) -> bool:
    return change.kind == _DEPLOYMENT and change.field.startswith("spec.template.")


def _install(kubectl: Command, text: str) -> None:
    """As docs/operations/upgrades.md has it done without helm."""
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=text)
    kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")


def _apply(kubectl: Command, objects: dict[Key, Document]) -> None:
    """As the operator does."""
    how = ("--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}")
    kubectl("apply", *how, "--filename", "-", stdin=_list_text([*objects.values()]))


def _objects_of(objects: dict[Key, Document], resources: dict[str, Document]) -> dict[Key, Document]:
    uids = {name: resource["metadata"]["uid"] for name, resource in resources.items()}
    return {key: with_owners(document, uids) for key, document in objects.items()}


def _resources(kubectl: Command) -> dict[str, Document]:
    return {item["metadata"]["name"]: item for item in kubectl.json("get", "kvct", *_AT)["items"]}


def _specs(resources: dict[str, Document]) -> dict[str, Any]:
    return {
        name: (resource["metadata"]["generation"], resource["spec"]) for name, resource in resources.items()
    }


def _is_settled(kubectl: Command) -> bool:
    return all(
        resource.get("status", {}).get("observedGeneration") == resource["metadata"]["generation"]
        for resource in _resources(kubectl).values()
    )


def _rolled_out(kubectl: Command) -> dict[str, dict[str, Any]]:
    """By Deployment its generation, its pods, and how many ReplicaSets it had; empty until all have one."""
    deployments = kubectl.json("get", "deployments", *_AT)["items"]
    sets = kubectl.json("get", "replicasets", *_AT)["items"]
    owners = [document["metadata"]["ownerReferences"][0]["name"] for document in sets]
    found = {
        deployment["metadata"]["name"]: {
            "generation": deployment["metadata"]["generation"],
            "template": deployment["spec"]["template"],
            "ran": owners.count(deployment["metadata"]["name"]),
        }
        for deployment in deployments
        if deployment.get("status", {}).get("observedGeneration") == deployment["metadata"]["generation"]
    }
    return found if len(found) == len(deployments) and all(each["ran"] for each in found.values()) else {}


def _list_text(objects: list[Document]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
