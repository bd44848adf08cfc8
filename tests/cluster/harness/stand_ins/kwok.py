"""kwok: nodes that are only said to be there, on which every pod is Ready at once."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.modules import module_folder
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say, program
from tests.cluster.harness.providers.provider import Cluster

_TOOLS: Final = Path(__file__).resolve().parents[3] / "tools" / "kwok"
# kwok's own annotation for nodes that are its to play.
_ANNOTATION: Final = "kwok.x-k8s.io/node"


# Its default of 4 at a time would be what a test of load measures. Pods get addresses that RFC 2544 keeps for
# benchmarks: the operator asks engines for their sizes, and nobody's real machine is to be asked.
_CONFIGURATION: Final = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {
        "cidr": "198.18.0.1/16",
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 4,
        "nodeLeaseParallelism": 4,
    },
}

_PLENTY: Final = {
    "cpu": "1000",
    "memory": "100Ti",
    "pods": "10000",
    "ephemeral-storage": "100Ti",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "nvidia.com/gpu": "10000",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What nodes are said to be.

    Attributes:
        allocatable: What each has for pods, such as `{"memory": "64Gi", "hugepages-2Mi": "8Gi"}`.
        labels: Their labels, beside the host name's.
        taints: Their taints, such as `{"key": "dedicated", "effect": "NoSchedule"}`.
    """

    allocatable: Mapping[str, str] = field(default_factory=lambda: dict(_PLENTY))
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()


@contextmanager
def running_kwok(cluster: Cluster, say: Say) -> Iterator[None]:
    """Plays the nodes that `add_nodes` makes, and their pods, as long as the context lasts."""
    built = program("kwok", say)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="kvtier-kwok-") as name:
        config = Path(name) / "kwok.yaml"
        config.write_text(yaml.safe_dump(_CONFIGURATION))
        process = Process(
            [
                built,
                f"--kubeconfig={cluster.kubeconfig()}",
                "--manage-all-nodes=false",
                f"--manage-nodes-with-annotation-selector={_ANNOTATION}=fake",
                f"--server-address=127.0.0.1:{port}",
                "--node-lease-duration-seconds=40",
                f"--config={config}",
                *(f"--config={stage}" for stage in _stages()),
            ],
            Path(name) / "kwok.log",
        )
        try:
            process.wait_until(lambda: answers_ok(f"http://127.0.0.1:{port}/healthz"))
            yield
        finally:
            process.stop()


def add_nodes(api: client.ApiClient, count: int, shape: Shape, prefix: str = "fake") -> list[str]:
    """Makes nodes that kwok plays and returns their names, which begin with a prefix."""
    names = [f"{prefix}-{number}" for number in range(count)]
    for name in names:
        client.CoreV1Api(api).create_node(_node(name, shape))
    return names


def _stages() -> list[Path]:
    """The stages by which nodes and pods become Ready at once, and go; it plays nothing without any."""
    stages = module_folder("sigs.k8s.io/kwok", _TOOLS) / "kustomize" / "stage"
    folders = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    return [path for folder in folders for path in sorted((stages / folder).glob("*-*.yaml"))]


def _node(name: str, shape: Shape) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "annotations": {_ANNOTATION: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **shape.labels},
        },
        "spec": {"taints": [dict(taint) for taint in shape.taints]},
        "status": {"allocatable": dict(shape.allocatable), "capacity": dict(shape.allocatable)},
    }
