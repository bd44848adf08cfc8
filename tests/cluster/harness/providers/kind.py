"""kind: clusters in containers, where a Docker engine runs. What it makes is deleted with the context."""

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.programs.tools import Say, kubernetes_version
from tests.cluster.harness.providers.from_kubeconfig import KubeconfigCluster
from tests.cluster.harness.providers.provider import Ability, Node

# kind removes the taint of an only node; with one of our own no pod lands there.
_TAINT = "kvtier.dev/not-for-tests=:NoSchedule"


@dataclass(frozen=True, slots=True)
class Kind:
    """Needs the commands `kind` and `docker`, and an engine that answers."""

    name: str = "kind"

    def why_not(self, ability: Ability) -> str:
        """Without an engine nothing; never a node for engines."""
        for command in ("kind", "docker"):
            if not shutil.which(command):
                return f"{command} is not on the PATH"
        if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:  # noqa: S607 - the user's own
            return "no Docker engine answers: docker info"
        if ability is Ability.NODE:
            return "no container of a kind node sees folders of this machine, and the engine's is too large"
        return ""

    def control_plane(self, say: Say) -> AbstractContextManager[KubeconfigCluster]:
        """There is no less than a whole cluster."""
        return _create_cluster(say)

    def cluster(self, say: Say) -> AbstractContextManager[KubeconfigCluster]:
        """A new cluster, on whose own node no pod of a test lands."""
        return _create_cluster(say)

    def node(
        self, say: Say, *, hugepages: int, images: Sequence[Path], mounts: Mapping[Path, str]
    ) -> AbstractContextManager[Node]:
        """Never: see `why_not`."""
        raise NotImplementedError(self.why_not(Ability.NODE), say, hugepages, images, mounts)


@contextmanager
def _create_cluster(say: Say) -> Iterator[KubeconfigCluster]:
    name = f"kvtier-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(prefix="kvtier-kind-") as folder:
        file = Path(folder) / "kind.kubeconfig"
        chosen = ("--name", name, "--kubeconfig", str(file))
        image = f"kindest/node:{kubernetes_version()}"
        say(f"kind: creating {name} from {image}")
        try:
            _run("kind", "create", "cluster", *chosen, "--image", image, "--wait", "120s")
            _run("docker", "exec", f"{name}-control-plane", *_taint(name))
            yield KubeconfigCluster(file, Path(folder))
        finally:
            _run("kind", "delete", "cluster", *chosen)


def _taint(name: str) -> tuple[str, ...]:
    settings = "--kubeconfig=/etc/kubernetes/admin.conf"
    return ("kubectl", settings, "taint", "node", f"{name}-control-plane", _TAINT)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
