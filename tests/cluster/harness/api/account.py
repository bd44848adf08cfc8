"""A service account that a program under test is to the API server: its token, and what it was refused."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubernetes import client, config
from tests.cluster.harness.control_plane.audit import Asked, requests_of
from tests.cluster.harness.providers.provider import Cluster


@dataclass(frozen=True, slots=True)
class Account:
    """A service account.

    Attributes:
        cluster: Where it is.
        namespace: Its namespace.
        name: Its name there.
    """

    cluster: Cluster
    namespace: str
    name: str

    def kubeconfig(self, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with its token, as its pod has one."""
        return self.cluster.kubeconfig_for_service_account(self.namespace, self.name, folder)

    def configuration(self) -> client.Configuration:
        """The same for a client of this process."""
        with tempfile.TemporaryDirectory(prefix="kvtier-account-") as folder:
            loaded = client.Configuration()
            config.load_kube_config(str(self.kubeconfig(Path(folder))), client_configuration=loaded)
            return loaded

    def refused(self) -> list[Asked]:
        """What it asked and may not."""
        log = self.cluster.audit_log
        return [each for each in requests_of(log, self.namespace, self.name) if each.refused] if log else []


@contextmanager
def nothing_refused(account: Account) -> Iterator[None]:
    """Within this context, what an account asks is what its rights let it.

    Raises:
        AssertionError: It asked for more.
    """
    yield
    refused = "; ".join(map(str, account.refused()))
    assert not refused, f"{account.namespace}/{account.name} has no right to {refused}"
