"""The kubelet."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.node.containers.containerd import SOCKET
from tests.cluster.harness.node.network.network import Network
from tests.cluster.harness.node.sandbox import Sandbox
from tests.cluster.harness.programs.process import Process

_HEALTH: Final = "http://127.0.0.1:10248/healthz"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the node is.

    Attributes:
        name: Its name in the cluster.
        network: Its addresses.
        cgroup: The cgroup that its pods are under.
    """

    name: str
    network: Network
    cgroup: str


def start_kubelet(
    program: Path, sandbox: Sandbox, control_plane: ControlPlane, identity: Identity
) -> Process:
    """Starts the kubelet, which registers the node."""
    folder = sandbox.folder / "kubelet"
    folder.mkdir()
    # The host's may name a resolver that only the host reaches; there is no cluster DNS.
    resolver = folder / "resolv.conf"
    resolver.write_text("")
    address = identity.network.node_address
    serving = control_plane.certificates.authority.sign(f"kubelet-{identity.name}", addresses=(address,))
    configuration = folder / "config.json"
    configuration.write_text(
        json.dumps(
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "authentication": {
                    "anonymous": {"enabled": False},
                    "webhook": {"enabled": False},
                    "x509": {"clientCAFile": str(control_plane.certificates.authority.file)},
                },
                "authorization": {"mode": "AlwaysAllow"},
                "address": address,
                "tlsCertFile": str(serving.certificate),
                "tlsPrivateKeyFile": str(serving.key),
                "containerRuntimeEndpoint": f"unix://{SOCKET}",
                "cgroupDriver": "cgroupfs",
                "cgroupRoot": identity.cgroup,
                "failSwapOn": False,
                "failCgroupV1": False,
                "oomScoreAdj": 0,
                # The disk and the memory are shared with everything else that this machine does.
                "evictionHard": {
                    "memory.available": "100Mi",
                    "nodefs.available": "1%",
                    "imagefs.available": "1%",
                },
                "imageGCHighThresholdPercent": 100,
                "imageMinimumGCAge": "24h",
                "resolvConf": str(resolver),
                "podLogsDir": str(folder / "pod-logs"),
                "volumePluginDir": str(folder / "volume-plugins"),
                "registryPullQPS": 0,
                "eventRecordQPS": 0,
                "kubeAPIQPS": 100,
                "kubeAPIBurst": 200,
                "maxPods": 110,
                "syncFrequency": "10s",
            }
        )
    )
    user = control_plane.kubeconfig_for_node(f"system:node:{identity.name}", "system:nodes")
    process = sandbox.start(
        "kubelet",
        program,
        f"--config={configuration}",
        f"--kubeconfig={user}",
        f"--root-dir={folder / 'root'}",
        f"--cert-dir={folder / 'certificates'}",
        f"--hostname-override={identity.name}",
        f"--node-ip={address}",
    )
    process.wait_until(lambda: _is_healthy(sandbox))
    return process


def _is_healthy(sandbox: Sandbox) -> bool:
    fetch = f"import urllib.request; urllib.request.urlopen('{_HEALTH}', timeout=2)"
    try:
        sandbox.run("python3", "-c", fetch)
    except RuntimeError:
        return False
    return True
