"""An installed operator at work with nothing but its own rights, and its removal before its resources."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.commands import Command, CommandError
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.waiting import eventually
from tests.cluster.install.places import CHART, CRD, ROOT, SYSTEM
from tests.cluster.install.running import running_operator

# Everything that asks for a right of its own: replicated pickers, a route, Istio's rule, monitoring.
RESOURCE = {
    "apiVersion": "kvtier.dev/v1alpha1",
    "kind": "KVCacheTier",
    "metadata": {"name": "all"},
    "spec": {
        "model": {"name": "Qwen/Qwen3-32B"},
        "replicas": 2,
        "engine": {"tensorParallelSize": 2, "gpuMemory": "80Gi"},
        "tiers": {"cpu": {"capacity": "100Gi"}},
        "router": {"replicas": 2, "gateway": {"parentRef": {"name": "front"}, "provider": "istio"}},
        "observability": {"serviceMonitor": True, "prometheusRule": True, "dashboard": True},
    },
}
CHILDREN = (
    "serviceaccount/all-engine",
    "role/all-picker",
    "rolebinding/all-picker",
    "deployment/all-engine",
    "poddisruptionbudget/all-engine",
    "deployment/all-picker",
    "inferencepool/all",
    "destinationrule/all-picker",
    "httproute/all",
)


@pytest.fixture
def system(kubectl: Command, helm: Command) -> Iterator[str]:
    yield SYSTEM
    for release in json.loads(helm("list", "--namespace", SYSTEM, "--output", "json")):
        helm("uninstall", release["name"], "--namespace", SYSTEM, "--wait")
    kubectl("delete", CRD, "--ignore-not-found")
    kubectl("delete", "namespace", SYSTEM, "--ignore-not-found")


@pytest.mark.parametrize("values", [[], ["watchNamespaces={%s}"]], ids=["everywhere", "one namespace"])
def test_its_rights_are_enough_and_nothing_stays_behind(  # noqa: PLR0913, PLR0917 - fixtures
    site: ControlPlane,
    kubectl: Command,
    helm: Command,
    namespace: str,
    system: str,
    values: list[str],
    tmp_path: Path,
) -> None:
    options = [part for value in values for part in ("--set", value % namespace)]
    helm("install", "kvtier", CHART, "--namespace", system, "--create-namespace", *options)
    with running_operator(site, tmp_path, namespaces=namespace if values else "") as log:
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, namespace), f"children; its log: {log.read_text()}")
        assert "orbidden" not in log.read_text()
        # what the operator cannot do has a condition
        eventually(lambda: _conditions(kubectl, namespace), "conditions")
        assert "orbidden" not in json.dumps(_conditions(kubectl, namespace))

    # the operator goes first, and the resource after it: no finalizer waits for anyone
    helm("uninstall", "kvtier", "--namespace", system, "--wait")
    kubectl("delete", "kvct", "all", "--namespace", namespace, "--timeout=20s")
    eventually(lambda: not _any_there(kubectl, namespace), "garbage collection of every child")


@pytest.mark.usefixtures("system")
def test_upgrade_restarts_no_engine(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    """From the latest release (from this checkout, while there is none): chart and operator."""
    released = _released(tmp_path / "released")
    before = released or ROOT
    chart = "charts/tiered-prefix-cache"
    at = ("--namespace", SYSTEM)
    helm("install", "kvtier", before / chart, *at, "--create-namespace")
    with running_operator(site, tmp_path, sources=released):
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, namespace), "children")
    engine = _engine(kubectl, namespace)

    helm("upgrade", "kvtier", CHART, *at, "--set", "operator.logFormat=plain,networkPolicy.enabled=true")
    with running_operator(site, tmp_path) as log:
        kubectl(
            "patch",
            "kvct",
            "all",
            "--namespace",
            namespace,
            "--type=merge",
            "--patch",
            '{"spec":{"replicas":3}}',
        )
        eventually(lambda: _engine(kubectl, namespace)["spec"]["replicas"] == 3, f"3 engines; log: {log}")
    assert _engine(kubectl, namespace)["spec"]["template"] == engine["spec"]["template"]
    kubectl("delete", "kvct", "all", "--namespace", namespace)


def _released(target: Path) -> Path | None:
    """The sources of the latest release that has an operator; None while there is none."""
    described = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match=v*"],  # noqa: S607 - whichever git there is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if described.returncode:
        return None
    target.mkdir()
    tag = described.stdout.strip()
    archive = subprocess.run(  # noqa: S603 - our own command
        ["git", "archive", tag, "charts", "operator", "connector", "scorer"],  # noqa: S607 - as above
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "--extract"], cwd=target, input=archive.stdout, check=True)  # noqa: S607 - as above
    return target if (target / "operator" / "kvtier_operator" / "reconcile").is_dir() else None


def _are_there(kubectl: Command, namespace: str) -> bool:
    try:
        kubectl("get", *CHILDREN, "--namespace", namespace)
    except CommandError:
        return False
    return True


def _any_there(kubectl: Command, namespace: str) -> str:
    return kubectl("get", *CHILDREN, "--namespace", namespace, "--ignore-not-found", "--output", "name")


def _conditions(kubectl: Command, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        kubectl.json("get", "kvct", "all", "--namespace", namespace).get("status", {}).get("conditions", [])
    )
    return found


def _engine(kubectl: Command, namespace: str) -> dict[str, Any]:
    return kubectl.json("get", "deployment", "all-engine", "--namespace", namespace)
