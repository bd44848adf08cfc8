"""containerd with runc, for the pods of one node."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.harness.images.single_layer import write_image
from tests.cluster.harness.node.containers.image_store import copy_root, image_store
from tests.cluster.harness.node.network.cni import PLUGINS, write_network
from tests.cluster.harness.node.network.network import Network
from tests.cluster.harness.node.sandbox import Sandbox
from tests.cluster.harness.programs.process import Process

SOCKET: Final = "/run/kvtier/containerd.sock"
_NAMESPACE: Final = "k8s.io"  # of containerd: where the kubelet's images and containers are
_PAUSE: Final = "kvtier.test/pause:1"
_CONFIG: Final = """
version = 2
root = "{root}"
state = "/run/kvtier/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # A machine may lack CAP_SYS_RESOURCE, which lowering the score takes.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{network}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{base}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def start_containerd(
    sandbox: Sandbox, network: Network, pause: Path, images: Sequence[Path], mounts: Mapping[Path, str]
) -> Process:
    """Starts containerd in a sandbox and waits until it answers.

    Args:
        sandbox: Where it runs.
        network: What its pods get addresses of.
        pause: The static program that holds a pod's namespaces.
        images: Archives (docker-archive or OCI) of the images that its pods can have.
        mounts: Folders of this machine that every container sees read-only, and where. No pod says so: it is
            as if their images had those folders.
    """
    folder = sandbox.folder / "containerd"
    folder.mkdir()
    root = folder / "root"
    base = folder / "base-spec.json"
    base.write_text(json.dumps(_base_spec(sandbox, mounts)))
    configuration = folder / "config.toml"
    configuration.write_text(
        _CONFIG.format(
            root=root,
            socket=SOCKET,
            pause=_PAUSE,
            plugins=PLUGINS,
            network=write_network(folder / "net.d", network),
            base=base,
        )
    )
    if images:
        with image_store(images) as store:
            if not store.exists():
                process = _start(sandbox, configuration)
                for image in images:
                    _import_image(sandbox, image)
                sandbox.end(process)
                copy_root(root, store)
            else:
                copy_root(store, root)
    process = _start(sandbox, configuration)
    _import_image(sandbox, write_image(folder / "pause.tar", _PAUSE, pause))
    return process


def _start(sandbox: Sandbox, configuration: Path) -> Process:
    process = sandbox.start("containerd", "containerd", "--config", configuration)
    process.wait_until(lambda: _answers(sandbox))
    return process


def _import_image(sandbox: Sandbox, archive: Path) -> None:
    sandbox.run("ctr", "--address", SOCKET, "--namespace", _NAMESPACE, "images", "import", archive)


def _base_spec(sandbox: Sandbox, mounts: Mapping[Path, str]) -> dict[str, object]:
    """The specification that containerd begins every container's with: its own default, and mounts."""
    specification: dict[str, object] = json.loads(sandbox.run("ctr", "oci", "spec"))
    listed = specification["mounts"]
    assert isinstance(listed, list)
    for source, destination in mounts.items():
        options = ["rbind", "ro", "nosuid", "nodev"]
        mount = {"source": str(source), "destination": destination, "type": "bind", "options": options}
        listed.append(mount)
    return specification


def _answers(sandbox: Sandbox) -> bool:
    try:
        sandbox.run("ctr", "--address", SOCKET, "plugins", "list")
    except RuntimeError:
        return False
    return True
