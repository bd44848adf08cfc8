"""What the cluster's owner denies, by the chart's values, to a running operator on the real API server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, SYSTEM
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually

POLICY = {
    "hostPath": ["/mnt/nvme0"],
    "ipcLock": "deny",
    "images": ["registry.example/team/"],
    "hostNames": ["llm.example"],
    "foreignGateways": ["edge/public"],
    "podTemplates": "deny",
}
CPU = {"capacity": "100Gi"}


def _disk(path: str) -> dict[str, Any]:
    return {"tiers": {"cpu": CPU, "disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": path}}}}}


def _route(host: str, namespace: str) -> dict[str, Any]:
    parent = {"name": "public", "namespace": namespace}
    return {"router": {"gateway": {"parentRef": parent, "hostnames": [host]}}}


DENIED = {
    "folder": ("HostPathDenied", _disk("/mnt/nvme0/link"), "spec.tiers.disk.volume.hostPath: "),
    "lock": (
        "IpcLockDenied",
        {"tiers": {"cpu": CPU | {"memlock": {"policy": "Require"}}}},
        "spec.tiers.cpu.memlock.policy: ",
    ),
    "image": ("ImageDenied", {"engine": {"image": "registry.example/other/x:1"}}, "spec.engine.image: "),
    "template": (
        "PodTemplateDenied",
        {"engine": {"podTemplate": {"spec": {"serviceAccountName": "kvtier-operator"}}}},
        "spec.engine.podTemplate: ",
    ),
    "host": ("HostNameDenied", _route("bank.example", "edge"), "spec.router.gateway.hostnames[0]: "),
    "gateway": ("GatewayDenied", _route("llm.example", "other"), "spec.router.gateway.parentRef.namespace: "),
}
ALLOWED = (
    _disk("/mnt/nvme0") | _route("llm.example", "edge") | {"engine": {"image": "registry.example/team/x:1"}}
)


@pytest.mark.usefixtures("clean_system")
def test_what_the_values_deny_is_not_accepted(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    helm(
        "install",
        "kvtier",
        CHART,
        "--namespace",
        SYSTEM,
        "--set-json",
        f"operator.policy={json.dumps(POLICY)}",
    )
    with run_installed(site, kubectl, tmp_path):
        _apply(kubectl, namespace, "allowed", ALLOWED)
        for name, (_, asked, _) in DENIED.items():
            _apply(kubectl, namespace, name, asked)
        eventually(lambda: _accepted(kubectl, namespace, "allowed").get("status") == "True", "acceptance")
        for name, (reason, _, field) in DENIED.items():
            said = eventually(lambda name=name: _accepted(kubectl, namespace, name), reason)  # type: ignore[misc]
            assert (said["status"], said["reason"]) == ("False", reason)
            assert field in said["message"]
            assert "the cluster's owner lets " in said["message"]
        made = kubectl("get", "deployments", "--namespace", namespace, "--output", "name").split()
        assert sorted(made) == ["deployment.apps/allowed-engine", "deployment.apps/allowed-picker"]


@pytest.mark.usefixtures("clean_system")
def test_what_runs_stays_when_it_is_denied_later(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    chart = (CHART, "--namespace", SYSTEM)
    helm("install", "kvtier", *chart)
    (tmp_path / "before").mkdir()
    with run_installed(site, kubectl, tmp_path / "before"):
        _apply(kubectl, namespace, "runs", _disk("/mnt/nvme0"))
        eventually(lambda: _engine(kubectl, namespace), "engines")
    before = _engine(kubectl, namespace)

    helm("upgrade", "kvtier", *chart, "--set", "operator.policy.rootEngines=deny")
    with run_installed(site, kubectl, tmp_path):
        eventually(lambda: _accepted(kubectl, namespace, "runs").get("status") == "False", "refusal")
        said = _accepted(kubectl, namespace, "runs")
        assert said["reason"] == "RootDenied"
        assert "spec.tiers.disk.volume.hostPath: " in said["message"]
        assert _engine(kubectl, namespace) == before
        _apply(kubectl, namespace, "runs", {"tiers": {"cpu": CPU, "disk": None}})
        eventually(lambda: _accepted(kubectl, namespace, "runs").get("status") == "True", "acceptance")
        eventually(lambda: _engine(kubectl, namespace) != before, "engines that are not root")


def _apply(kubectl: Command, namespace: str, name: str, asked: dict[str, Any]) -> None:
    spec = {"model": {"name": "Qwen/Qwen3-32B"}, "tiers": {"cpu": CPU}, **asked}
    spec["engine"] = {"tensorParallelSize": 2, "gpuMemory": "80Gi", **spec.get("engine", {})}
    made = {"apiVersion": "kvtier.dev/v1alpha1", "kind": "KVCacheTier", "metadata": {"name": name}}
    kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=json.dumps(made | {"spec": spec}))


def _accepted(kubectl: Command, namespace: str, name: str) -> dict[str, Any]:
    """The condition; empty while there is none."""
    status = kubectl.json("get", "kvct", name, "--namespace", namespace).get("status", {})
    return next(
        (condition for condition in status.get("conditions", ()) if condition["type"] == "Accepted"), {}
    )


def _engine(kubectl: Command, namespace: str) -> dict[str, Any]:
    """Template of the engines' pods; empty while there is none."""
    found = kubectl(
        "get", "deployment", "runs-engine", "--namespace", namespace, "--ignore-not-found", "--output", "json"
    )
    template: dict[str, Any] = json.loads(found)["spec"]["template"] if found else {}
    return template
