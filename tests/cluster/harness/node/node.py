"""A real node beside a cluster: kubelet, containerd, runc, kube-proxy, in namespaces of their own."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes import client
from tests.cluster.harness.control_plane import cluster as clusters
from tests.cluster.harness.control_plane.cluster import running_cluster
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.node.containers.containerd import start_containerd
from tests.cluster.harness.node.kubelet import Identity, start_kubelet
from tests.cluster.harness.node.machine.cgroups import own_cgroup
from tests.cluster.harness.node.machine.hugepages import reserved_hugepages
from tests.cluster.harness.node.machine.leftovers import note_leftovers, one_at_a_time, remove_leftovers
from tests.cluster.harness.node.machine.packages import PACKAGES
from tests.cluster.harness.node.network.kube_proxy import start_kube_proxy
from tests.cluster.harness.node.network.network import connect, free_network
from tests.cluster.harness.node.sandbox import Sandbox, running_sandbox
from tests.cluster.harness.programs.tools import Say, programs
from tests.shared.debian import install_packages
from tests.shared.waiting import eventually

PROGRAMS: Final = (*clusters.PROGRAMS, "kubelet", "kube-proxy", "pause")


@dataclass(frozen=True, slots=True)
class RealNode:
    """A running node and the cluster that it is the only node of.

    Attributes:
        name: Its name in the cluster.
        cluster: The cluster.
        sandbox: Where its programs run.
    """

    name: str
    cluster: ControlPlane
    sandbox: Sandbox


@contextmanager
def running_node(
    say: Say, *, hugepages: int, images: Sequence[Path] = (), mounts: Mapping[Path, str] | None = None
) -> Iterator[RealNode]:
    """A cluster with one Ready node; everything is gone afterwards.

    Args:
        say: Takes lines about what takes long.
        hugepages: How many 2 MiB pages the node has.
        images: Archives (docker-archive or OCI) of the images that its pods can have.
        mounts: Folders of this machine that every container sees read-only, and where.
    """
    install_packages(PACKAGES, say)
    built = programs(PROGRAMS, say)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kvtier-node-")))
        with one_at_a_time():
            remove_leftovers()
            network = free_network()
            stack.enter_context(note_leftovers(network.link, hugepages, folder))
            cgroup = stack.enter_context(own_cgroup(network.link))
            sandbox = stack.enter_context(running_sandbox(folder))
            connect(network, sandbox.pid)
        stack.enter_context(reserved_hugepages(hugepages))
        identity = Identity(f"kvtier-node-{network.index}", network, cgroup)
        cluster = stack.enter_context(running_cluster(say, network.api_server, folder))
        stack.callback(start_containerd(sandbox, network, built["pause"], images, mounts or {}).kill)
        stack.callback(start_kubelet(built["kubelet"], sandbox, cluster, identity).kill)
        stack.callback(start_kube_proxy(built["kube-proxy"], sandbox, cluster, identity).kill)
        with cluster.client() as api:
            eventually(lambda: _is_ready(api, identity.name), f"Ready node; its logs are in {folder}")
        yield RealNode(identity.name, cluster, sandbox)


def _is_ready(api: client.ApiClient, name: str) -> bool:
    nodes: list[Any] = client.CoreV1Api(api).list_node().items
    conditions = [
        condition for node in nodes if node.metadata.name == name for condition in node.status.conditions
    ]
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)
