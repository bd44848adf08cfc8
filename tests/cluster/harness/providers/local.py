"""Kubernetes' own programs as processes of this machine: needs Go, and root for a node."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.control_plane.cluster import running_cluster
from tests.cluster.harness.control_plane.control_plane import ControlPlane, running_control_plane
from tests.cluster.harness.node.machine.abilities import why_no_node
from tests.cluster.harness.node.node import RealNode, running_node
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Ability


@dataclass(frozen=True, slots=True)
class Local:
    """The default. As root it can do everything."""

    name: str = "local"

    def why_not(self, ability: Ability) -> str:
        """Only a node can be too much to ask."""
        return why_no_node() if ability is Ability.NODE else ""

    def control_plane(self, say: Say) -> AbstractContextManager[ControlPlane]:
        """etcd and kube-apiserver."""
        return running_control_plane(say)

    def cluster(self, say: Say) -> AbstractContextManager[ControlPlane]:
        """With kube-controller-manager and kube-scheduler."""
        return running_cluster(say)

    def node(
        self, say: Say, *, hugepages: int, images: Sequence[Path], mounts: Mapping[Path, str]
    ) -> AbstractContextManager[RealNode]:
        """With kubelet, containerd and kube-proxy."""
        return running_node(say, hugepages=hugepages, images=images, mounts=mounts)
