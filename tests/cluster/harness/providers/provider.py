"""What a source of clusters offers the tests, whatever it makes them with."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Protocol

from kubernetes import client
from tests.cluster.harness.programs.tools import Say


class Ability(Enum):
    """What a provider may or may not be able to do."""

    CONTROL_PLANE = "an API server that only this test run uses"
    CLUSTER = "a cluster with all the controllers"
    NODE = "a node that runs pods, with huge pages and with images that no registry has"


class Cluster(Protocol):
    """A cluster that can be used."""

    @property
    def url(self) -> str:
        """Where this machine reaches its API server."""

    @property
    def audit_log(self) -> Path | None:
        """What service accounts asked of it so far; None where that is not recorded."""

    def client(self) -> client.ApiClient:
        """A new client with all rights."""

    def kubeconfig(self, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with all rights."""

    def kubeconfig_for_service_account(self, namespace: str, name: str, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with a token of an existing service account."""


class Node(Protocol):
    """A node that runs pods, in a cluster of its own."""

    @property
    def name(self) -> str:
        """Its name in the cluster."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""


class Provider(Protocol):
    """A source of clusters; each context ends with what it made gone."""

    @property
    def name(self) -> str:
        """As KVTIER_TEST_PROVIDER names it."""

    def why_not(self, ability: Ability) -> str:
        """Why it cannot do something here, for a person to act on; empty if it can."""

    def control_plane(self, say: Say) -> AbstractContextManager[Cluster]:
        """An API server without controllers, or a whole cluster where there is no less."""

    def cluster(self, say: Say) -> AbstractContextManager[Cluster]:
        """A cluster with all the controllers."""

    def node(
        self, say: Say, *, hugepages: int, images: Sequence[Path], mounts: Mapping[Path, str]
    ) -> AbstractContextManager[Node]:
        """A node with 2 MiB huge pages and images, whose containers all see folders of this machine."""


def lacking(provider: Provider, ability: Ability) -> str:
    """The line that says what a provider cannot do, and why; empty if it can."""
    reason = provider.why_not(ability)
    return reason and f"{provider.name}: no {ability.value}: {reason}"
