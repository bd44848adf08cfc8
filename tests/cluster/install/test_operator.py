"""An installed operator at work with nothing but its own rights, and its removal before its resources."""

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command, CommandError
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, OPERATOR, ROOT, SYSTEM
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually

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


@pytest.mark.parametrize(
    "places",
    ["", "watchNamespaces={%s},rbac.clusterReads=false"],
    ids=["everywhere", "one namespace and no nodes"],
)
@pytest.mark.usefixtures("clean_system")
def test_its_rights_are_enough_and_nothing_stays_behind(  # noqa: PLR0913, PLR0917 - fixtures
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, places: str, tmp_path: Path
) -> None:
    values = ["--set", "image.repository=mirror.example/kvtier"]
    values += ["--set", places % namespace] if places else []
    helm("install", "kvtier", CHART, "--namespace", SYSTEM, *values)
    with run_installed(site, kubectl, tmp_path) as operator:
        log = operator.process.log
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, namespace), "children")
        assert _asked(operator.ready_url) == (200, "ok")
        # what the operator may not do stands in its log or in a condition
        told = eventually(lambda: _conditions(kubectl, namespace), "conditions")
        # repairing asks for more rights than making did
        before = _uids(kubectl, namespace)
        kubectl("delete", *CHILDREN, "--namespace", namespace, "--wait=false")
        eventually(lambda: (now := _uids(kubectl, namespace)) and not before & now, "the deleted children")
        assert "orbidden" not in log.read_text()
        assert [each for each in told if "orbidden" in told[each]["message"]] == (
            ["NodesFit"] if places else []
        )
    _, doctor, *_ = _engine(kubectl, namespace)["spec"]["template"]["spec"]["initContainers"]
    assert doctor["image"].startswith("mirror.example/kvtier:")

    # the operator goes first, and the resource after it: no finalizer waits for anyone
    helm("uninstall", "kvtier", "--namespace", SYSTEM, "--wait")
    kubectl("delete", "kvct", "all", "--namespace", namespace, "--timeout=20s")
    # the collector looks for new kinds of owners every 30 s (kube-controller-manager, garbagecollector.go)
    gone = "garbage collection of every child"
    eventually(lambda: not _any_there(kubectl, namespace), gone, timeout_s=180)


@pytest.mark.usefixtures("clean_system")
def test_upgrade_restarts_no_engine(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    """From the latest release (from this checkout, while there is none): chart and operator."""
    released = _released(tmp_path / "released")
    before = released or ROOT
    chart = "charts/tiered-prefix-cache"
    at = ("--namespace", SYSTEM)
    helm("install", "kvtier", before / chart, *at)
    with run_installed(site, kubectl, tmp_path, sources=released):
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, namespace), "children")
    engine = _engine(kubectl, namespace)

    helm("upgrade", "kvtier", CHART, *at, "--set", "operator.logFormat=plain,networkPolicy.enabled=true")
    with run_installed(site, kubectl, tmp_path):
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
        eventually(lambda: _engine(kubectl, namespace)["spec"]["replicas"] == 3, "3 engines")
    assert _engine(kubectl, namespace)["spec"]["template"] == engine["spec"]["template"]
    kubectl("delete", "kvct", "all", "--namespace", namespace)


@pytest.mark.usefixtures("clean_system")
def test_a_namespace_without_rights_makes_it_unready_and_the_others_are_served(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    missing = f"{namespace}-later"
    both = f"{namespace},{missing}"
    chart = (CHART, "--namespace", SYSTEM, "--set")
    helm("install", "kvtier", *chart, f"watchNamespaces={{{namespace}}},rbac.clusterReads=false")
    with run_installed(site, kubectl, tmp_path, env={"KVTIER_NAMESPACES": both}) as operator:
        said = f"namespace {missing} does not exist, or the operator has no rights there: make the namespace"
        eventually(lambda: said in operator.process.log.read_text(), "the namespace's line in the log")
        eventually(lambda: _is_alone_in_the_way(operator.ready_url, said), "nothing else in the way")
        assert _asked(operator.health_url) == (200, "ok"), "a restart would not help"
        kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, namespace), "children in the namespace that is there")
        # with a fixed number of tries kopf would end and begin anew, in all namespaces
        eventually(lambda: _refused_to_kopf(site, missing) > 4, "more tries than kopf makes by itself")
        assert "watching KVCacheTier" not in operator.process.log.read_text()

        kubectl("create", "namespace", missing)
        helm("upgrade", "kvtier", *chart, f"watchNamespaces={{{both}}},rbac.clusterReads=false")
        eventually(lambda: _asked(operator.ready_url) == (200, "ok"), "readiness")
        kubectl("apply", "--namespace", missing, "--filename", "-", stdin=json.dumps(RESOURCE))
        eventually(lambda: _are_there(kubectl, missing), "children")
        assert operator.process.log.read_text().count(said) == 1
    kubectl("delete", "namespace", missing, "--wait=false")


@pytest.mark.usefixtures("clean_system")
def test_a_right_that_is_missing_makes_it_unready(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    helm("install", "kvtier", CHART, "--namespace", SYSTEM, "--set", f"watchNamespaces={{{namespace}}}")
    at = ("--namespace", namespace)
    whole = kubectl.json("get", "role", OPERATOR, *at)
    less = whole | {"rules": [rule for rule in whole["rules"] if "deployments" not in rule["resources"]]}
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=_appliable(less))
    with run_installed(site, kubectl, tmp_path) as operator:
        line = f"watching Deployment in {namespace}: "
        eventually(lambda: _asked(operator.ready_url)[1].startswith(line), "the missing right")
        assert _asked(operator.ready_url)[0] == 503
        kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=_appliable(whole))
        eventually(lambda: _asked(operator.ready_url) == (200, "ok"), "readiness")


def _refused_to_kopf(site: ControlPlane, namespace: str) -> int:
    """How often kopf, who says who it is, was refused in a namespace."""
    events = map(json.loads, site.audit_log.read_text().splitlines())
    return sum(
        event.get("objectRef", {}).get("namespace") == namespace
        and event["responseStatus"]["code"] == 403
        and event["userAgent"].startswith("kopf")
        for event in events
    )


def _appliable(document: dict[str, Any]) -> str:
    """An object that was read, without what the server keeps of it."""
    kept = {key: document["metadata"][key] for key in ("name", "namespace", "labels")}
    return json.dumps(document | {"metadata": kept})


def _is_alone_in_the_way(ready_url: str, line: str) -> bool:
    code, answer = _asked(ready_url)
    return code == 503 and answer.startswith(line) and len(answer.splitlines()) == 1


def _asked(url: str) -> tuple[int, str]:
    """Status and body of a probe's answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


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


def _uids(kubectl: Command, namespace: str) -> set[str]:
    """Of all children; none as long as one is missing."""
    jsonpath = "jsonpath={.items[*].metadata.uid}"
    try:
        return set(kubectl("get", *CHILDREN, "--namespace", namespace, "--output", jsonpath).split())
    except CommandError:
        return set()


def _any_there(kubectl: Command, namespace: str) -> str:
    return kubectl("get", *CHILDREN, "--namespace", namespace, "--ignore-not-found", "--output", "name")


def _conditions(kubectl: Command, namespace: str) -> dict[str, Any]:
    """By type; empty while there are none."""
    status = kubectl.json("get", "kvct", "all", "--namespace", namespace).get("status", {})
    return {condition["type"]: condition for condition in status.get("conditions", ())}


def _engine(kubectl: Command, namespace: str) -> dict[str, Any]:
    return kubectl.json("get", "deployment", "all-engine", "--namespace", namespace)
