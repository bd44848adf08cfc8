"""`kubectl apply -k` of everything in manifests/, on a real API server that validates strictly."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.cases.attached import IMAGE, LABELS, attach_plan, vllm_pod
from tests.cluster.attach.shapes import tier
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.operator.places import CRD, MANIFESTS, OPERATOR, SYSTEM

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.attach.documents import attach_document
from kvtier_operator.planning.attach.patch import kustomize_patches
from kvtier_operator.planning.base.names import POLICY_VERSIONS
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import Outcome

BACKENDS = {"kvtier": "KVTier", "lmcache": "LMCache", "lmcache-mp": "LMCacheMP", "native": "Native"}
HUGEPAGES = ("kvtier", "lmcache", "lmcache-mp")
STRICT = ("--server-side", "--validate=strict")


@pytest.fixture(scope="module")
def base(kubectl: Command) -> Iterator[None]:
    kubectl("apply", "-k", MANIFESTS / "base", *STRICT)
    kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
    yield
    kubectl("delete", "-k", MANIFESTS / "base")


def test_overlay_on_a_bare_cluster_needs_the_crd_first(kubectl: Command, tmp_path: Path) -> None:
    """What the install page says: one command cannot make a kind and its first object."""
    kubectl = replace(kubectl, folder=tmp_path)  # remembers no CRD of another test's
    with pytest.raises(CommandError, match="ensure CRDs are installed first"):
        kubectl("apply", "-k", MANIFESTS / "overlays" / "kvtier", *STRICT)
    kubectl("wait", "--for=condition=Established", CRD, "--timeout=30s")
    kubectl("apply", "-k", MANIFESTS / "overlays" / "kvtier", *STRICT)
    # the CRD goes first, and takes its objects along
    kubectl("delete", "-k", MANIFESTS / "overlays" / "kvtier", "--ignore-not-found")


def test_attach_s_component_beside_another_of_the_same_fields(kubectl: Command, tmp_path: Path) -> None:
    """Both give what each adds, by the real kustomize."""
    pod = vllm_pod()
    owned = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}}
    owned["spec"] = {"selector": {"matchLabels": LABELS}, "template": pod}
    attached = attach_document([attach_plan()], owned, IMAGE).document
    theirs: list[dict[str, object]] = [
        {"op": "add", "path": f"/spec/template/{field}", "value": value}
        for field, value in (
            ("metadata/annotations", {"theirs": "1"}),
            ("spec/initContainers", [{"name": "theirs", "image": "theirs"}]),
            ("spec/volumes", [{"name": "theirs", "emptyDir": {}}]),
            ("spec/containers/0/env", [{"name": "THEIRS", "value": "1"}]),
        )
    ]
    patches = {
        "ours": [*kustomize_patches(owned, attached)],
        "theirs": [{"target": {"kind": "Deployment"}, "patch": json.dumps(theirs)}],
    }
    _write_kustomization(tmp_path / "base", "Kustomization", resources=["owned.yaml"])
    (tmp_path / "base" / "owned.yaml").write_text(json.dumps(owned))
    for name, entries in patches.items():
        _write_kustomization(tmp_path / name, "Component", patches=entries)
    _write_kustomization(
        tmp_path / "both", "Kustomization", resources=["../base"], components=["../theirs", "../ours"]
    )
    built = yaml.safe_load(kubectl("kustomize", tmp_path / "both"))["spec"]["template"]
    ours = attached["spec"]["template"]
    assert built["metadata"]["annotations"] == {**ours["metadata"]["annotations"], "theirs": "1"}
    for field in ("initContainers", "volumes"):
        assert {item["name"] for item in built["spec"][field]} == {
            "theirs",
            *(item["name"] for item in ours["spec"][field]),
        }
    [engine], [expected] = built["spec"]["containers"], ours["spec"]["containers"]
    assert {item["name"] for item in engine["env"]} == {"THEIRS", *(item["name"] for item in expected["env"])}
    assert engine["resources"] == expected["resources"]


def _write_kustomization(folder: Path, kind: str, **fields: object) -> None:
    folder.mkdir()
    version = "v1alpha1" if kind == "Component" else "v1beta1"
    document = {"apiVersion": f"kustomize.config.k8s.io/{version}", "kind": kind, **fields}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))


def test_all_are_tried() -> None:
    assert {path.name for path in (MANIFESTS / "overlays").iterdir()} == BACKENDS.keys()
    assert {path.name for path in (MANIFESTS / "static").iterdir()} == BACKENDS.keys()
    assert {path.name for path in (MANIFESTS / "components").iterdir()} == {
        "hugepages",
        "memlock",
        "disk",
        "monitoring",
        "attach",
        "attach-image-volume",
    }


@pytest.mark.parametrize("overlay", BACKENDS)
@pytest.mark.usefixtures("base")
def test_overlay(kubectl: Command, overlay: str) -> None:
    kubectl("apply", "-k", MANIFESTS / "overlays" / overlay, *STRICT)
    applied = kubectl.json("get", "kvct", "qwen3-32b")
    assert applied["spec"]["backend"] == BACKENDS[overlay]
    kubectl("get", "deployment", OPERATOR, "--namespace", SYSTEM)
    kubectl("delete", "kvct", "qwen3-32b")


@pytest.mark.parametrize("overlay", BACKENDS)
def test_static(kubectl: Command, namespace: str, overlay: str, tmp_path: Path) -> None:
    """The Plan's objects themselves, in a namespace of the reader's."""
    folder = MANIFESTS / "static" / overlay
    applied = kubectl("apply", "-k", folder, *STRICT)
    assert "deployment.apps/qwen3-32b-engine serverside-applied" in applied
    kubectl("delete", "-k", folder)

    _kustomization(tmp_path, folder, {"namespace": namespace})
    kubectl("apply", "-k", tmp_path, *STRICT, "--dry-run=server")


@pytest.mark.parametrize(
    ("overlay", "component"),
    [
        (overlay, component)
        for overlay in BACKENDS
        for component in ("hugepages", "memlock", "disk", "monitoring")
        if component != "hugepages" or overlay in HUGEPAGES
    ],
)
@pytest.mark.usefixtures("base")
def test_component(kubectl: Command, overlay: str, component: str, tmp_path: Path) -> None:
    _kustomization(
        tmp_path,
        MANIFESTS / "overlays" / overlay,
        {"components": [_relative(MANIFESTS / "components" / component, tmp_path)]},
    )
    admitted = kubectl.json("apply", "-k", tmp_path, *STRICT, "--dry-run=server")["items"]
    [document] = [document for document in admitted if document["kind"] == "KVCacheTier"]
    plan = make_plan(parse_resource(document, component), Observed())
    assert [check.message for check in plan.checks if check.outcome is Outcome.REJECT] == []
    spec = document["spec"]
    match component:
        case "hugepages" | "memlock":
            assert spec["tiers"]["cpu"][component]["policy"] == "Require"
        case "disk":
            assert spec["tiers"]["disk"]["capacity"] == "500Gi"
        case "monitoring":
            wanted = ("serviceMonitor", "prometheusRule", "dashboard")
            assert {name: spec["observability"][name] for name in wanted} == dict.fromkeys(wanted, True)


@pytest.mark.parametrize(
    ("component", "refused"),
    [
        ("hugepages", ""),
        ("disk", ""),
        ("memlock", "Require needs IPC_LOCK, and attach gives pods no rights"),
        ("monitoring", "with attach no monitoring objects are made: remove observability"),
    ],
)
@pytest.mark.usefixtures("base")
def test_component_beside_pods_of_others(
    kubectl: Command, component: str, refused: str, tmp_path: Path
) -> None:
    document = tmp_path / "tier.yaml"
    document.write_text(json.dumps(tier()))
    components = [_relative(MANIFESTS / "components" / component, tmp_path)]
    _kustomization(tmp_path, document, {"components": components})
    with pytest.raises(CommandError, match=refused) if refused else nullcontext():
        kubectl("apply", "-k", tmp_path, *STRICT, "--dry-run=server")


@pytest.mark.parametrize("component", ["attach", "attach-image-volume"])
@pytest.mark.usefixtures("base")
def test_the_policy_that_attaches_pods(kubectl: Command, component: str, tmp_path: Path) -> None:
    """With the version that the cluster serves in place of the latest, as the component says."""
    version = json.dumps([{"op": "replace", "path": "/apiVersion", "value": POLICY_VERSIONS[1]}])
    patches = [{"target": {"kind": "MutatingAdmissionPolicy.*"}, "patch": version}]
    components = [_relative(MANIFESTS / "components" / component, tmp_path)]
    _kustomization(tmp_path, MANIFESTS / "base", {"components": components, "patches": patches})
    applied = kubectl("apply", "-k", tmp_path, *STRICT)
    for kind in ("mutatingadmissionpolicy", "mutatingadmissionpolicybinding"):
        assert f"{kind}.admissionregistration.k8s.io/{OPERATOR} serverside-applied" in applied
    kubectl("delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", OPERATOR)


@pytest.mark.usefixtures("base")
def test_an_unknown_field_would_be_seen(kubectl: Command, tmp_path: Path) -> None:
    patch = {
        "target": {"kind": "Deployment", "name": OPERATOR},
        "patch": '[{"op": "add", "path": "/spec/replica", "value": 1}]',
    }
    _kustomization(tmp_path, MANIFESTS / "base", {"patches": [patch]})
    with pytest.raises(CommandError, match="replica"):
        kubectl("apply", "-k", tmp_path, *STRICT, "--dry-run=server")


def _kustomization(folder: Path, resource: Path, further: dict[str, object]) -> None:
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [_relative(resource, folder)],
        **further,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))


def _relative(path: Path, folder: Path) -> str:
    """Kustomize takes no absolute paths."""
    return "/".join([".."] * len(folder.resolve().parts[1:])) + str(path.resolve())
