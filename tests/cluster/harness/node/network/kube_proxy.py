"""kube-proxy: ClusterIPs lead to pods, from pods and from this machine."""

from pathlib import Path

from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.node.kubelet import Identity
from tests.cluster.harness.node.sandbox import Sandbox
from tests.cluster.harness.programs.process import Process


def start_kube_proxy(
    program: Path, sandbox: Sandbox, control_plane: ControlPlane, identity: Identity
) -> Process:
    """Starts kube-proxy in iptables mode, in the sandbox's own network."""
    user = control_plane.kubeconfig_for_node("system:kube-proxy")
    return sandbox.start(
        "kube-proxy",
        program,
        f"--kubeconfig={user}",
        f"--hostname-override={identity.name}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={identity.network.pods_cidr}",
        # The limit belongs to the whole kernel.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
        "--iptables-min-sync-period=100ms",
    )
