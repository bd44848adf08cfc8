"""A cluster that is there already, named by KUBECONFIG: it is used, and not changed for good."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.from_kubeconfig import KubeconfigCluster
from tests.cluster.harness.providers.provider import Ability, Node


@dataclass(frozen=True, slots=True)
class Existing:
    """Used only when it is asked for by name: a KUBECONFIG alone is no leave to run tests on its cluster."""

    name: str = "existing"

    def why_not(self, ability: Ability) -> str:
        """Its API server is others' too, and its nodes cannot be given pages or images from here."""
        file = os.environ.get("KUBECONFIG")
        if not file or not Path(file).is_file():
            return "KUBECONFIG names no file"
        return {
            Ability.CONTROL_PLANE: "these tests leave CRDs, nodes and namespaces behind",
            Ability.CLUSTER: "",
            Ability.NODE: "huge pages and images cannot be given to another's nodes from here",
        }[ability]

    def control_plane(self, say: Say) -> AbstractContextManager[KubeconfigCluster]:
        """The cluster."""
        return self.cluster(say)

    def cluster(self, say: Say) -> AbstractContextManager[KubeconfigCluster]:
        """The cluster."""
        return _existing_cluster(say)

    def node(
        self, say: Say, *, hugepages: int, images: Sequence[Path], mounts: Mapping[Path, str]
    ) -> AbstractContextManager[Node]:
        """Never: see `why_not`."""
        raise NotImplementedError(self.why_not(Ability.NODE), say, hugepages, images, mounts)


@contextmanager
def _existing_cluster(say: Say) -> Iterator[KubeconfigCluster]:
    file = Path(os.environ["KUBECONFIG"])
    say(f"tests run on the cluster of {file}")
    with tempfile.TemporaryDirectory(prefix="kvtier-existing-") as folder:
        yield KubeconfigCluster(file, Path(folder))
