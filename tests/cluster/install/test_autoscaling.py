"""Kubernetes' own controllers and the autoscaler that the operator makes: who goes, and what is missing."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness.api.commands import Command
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CHART, SYSTEM
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.stand_ins.http_server import engine_that_says
from tests.cluster.install.running import run_installed
from tests.shared.waiting import eventually

HELD = {"127.0.0.1": 900, "127.0.0.2": 100, "127.0.0.3": 500}
"""Of 1,000 tokens, by the address of an engine."""
ENGINES = ("--selector", "app.kubernetes.io/component=engine")
COST = "controller.kubernetes.io/pod-deletion-cost"
_ROUNDS_S = 120
"""For a round of the operator over the engines, and one of Kubernetes' controller after it."""


def resource(port: int, **spec: object) -> str:
    base = {
        "model": {"name": "Qwen/Qwen3-32B"},
        "engine": {"port": port},
        "tiers": {"cpu": {"capacity": "100Gi"}},
    }
    document = {"apiVersion": "kvtier.dev/v1alpha1", "kind": "KVCacheTier", "metadata": {"name": "scaled"}}
    return json.dumps(document | {"spec": base | spec})


@pytest.mark.usefixtures("clean_system")
def test_engines_that_hold_least_go_first(
    site: ControlPlane, kubectl: Command, helm: Command, namespace: str, tmp_path: Path
) -> None:
    helm("install", "kvtier", CHART, "--namespace", SYSTEM)
    at, (port,) = ("--namespace", namespace), free_ports(1)
    with run_installed(site, kubectl, tmp_path), ExitStack() as engines:
        for address, held in HELD.items():
            engines.enter_context(engine_that_says(_metrics(held), address, port))
        wanted = {"minReplicas": len(HELD), "maxReplicas": 8}
        kubectl("apply", *at, "--filename", "-", stdin=resource(port, autoscaling=wanted))
        pods = eventually(lambda: _all_engines(kubectl, namespace), "as many engines as are the least")

        # there is not an adapter, which the autoscaler finds out and the resource tells
        missing = eventually(lambda: _refusal(kubectl, namespace), "word of the metric", timeout_s=_ROUNDS_S)
        assert "custom.metrics.k8s.io" in missing

        by_address = dict(zip(HELD, pods, strict=True))
        for address, pod in by_address.items():
            _make_ready(kubectl, namespace, pod, address)
        costs = eventually(lambda: _costs(kubectl, namespace), "costs of all engines", timeout_s=_ROUNDS_S)
        assert {address: costs[pod] for address, pod in by_address.items()} == {
            "127.0.0.1": "90",
            "127.0.0.2": "10",
            "127.0.0.3": "50",
        }

        fewer = {"spec": {"autoscaling": {"minReplicas": 1, "maxReplicas": 2}}}
        kubectl("patch", "kvct", "scaled", *at, "--type", "merge", "--patch", json.dumps(fewer))
        left = eventually(
            lambda: now if (now := _pods(kubectl, namespace)).keys() < {*pods} else {},
            "an engine less",
            timeout_s=_ROUNDS_S,
        )
        assert left.keys() == {by_address["127.0.0.1"], by_address["127.0.0.3"]}


def _metrics(held: int) -> str:
    return f"vllm:kvtier_cpu_capacity_tokens 1000\nvllm:kvtier_cpu_cached_tokens {held}\n"


def _pods(kubectl: Command, namespace: str) -> dict[str, dict[str, Any]]:
    """Engines that nobody has told to go, by name."""
    found = kubectl.json("get", "pods", "--namespace", namespace, *ENGINES)["items"]
    return {
        document["metadata"]["name"]: document
        for document in found
        if "deletionTimestamp" not in document["metadata"]
    }


def _all_engines(kubectl: Command, namespace: str) -> list[str]:
    found = sorted(_pods(kubectl, namespace))
    return found if len(found) == len(HELD) else []


def _make_ready(kubectl: Command, namespace: str, pod: str, address: str) -> None:
    """What its kubelet would say."""
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    status |= {"conditions": [{"type": "Ready", "status": "True"}]}
    place = (pod, "--namespace", namespace, "--subresource", "status", "--type", "merge")
    kubectl("patch", "pod", *place, "--patch", json.dumps({"status": status}))


def _costs(kubectl: Command, namespace: str) -> dict[str, str]:
    found = {
        name: (pod["metadata"].get("annotations") or {}).get(COST, "")
        for name, pod in _pods(kubectl, namespace).items()
    }
    return found if all(found.values()) else {}


def _refusal(kubectl: Command, namespace: str) -> str:
    status = kubectl.json("get", "kvct", "scaled", "--namespace", namespace).get("status", {})
    return next(
        (
            str(condition["message"])
            for condition in status.get("conditions", ())
            if condition["type"] == "AutoscalerReady"
            and condition["status"] == "False"
            and condition["reason"] != "NotCreated"
        ),
        "",
    )
