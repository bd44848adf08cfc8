"""The control plane as the tests use it: what runs, and clients for it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubernetes import client
from tests.cluster.harness.control_plane.apiserver import LOOPBACK, Addresses, start_api_server
from tests.cluster.harness.control_plane.audit import AUDIT_LOG
from tests.cluster.harness.control_plane.certificates import Certificates, KeyPair, make_certificates
from tests.cluster.harness.control_plane.etcd import start_etcd
from tests.cluster.harness.control_plane.kubeconfig import (
    kubeconfig_for_certificate,
    kubeconfig_for_token,
    service_account_token,
)
from tests.cluster.harness.programs.tools import Say, programs

PROGRAMS: Final = ("etcd", "kube-apiserver")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane: its address and what its administrator needs to talk to it.

    Attributes:
        url: Where this machine reaches it.
        certificates: Its authority and its administrator's certificate.
        folder: Logs and generated files, gone when it is.
        addresses: Where nodes reach it, and the range of Services.
    """

    url: str
    certificates: Certificates
    folder: Path
    addresses: Addresses

    @property
    def audit_log(self) -> Path:
        """What its service accounts asked so far."""
        return self.folder / AUDIT_LOG

    def client(self) -> client.ApiClient:
        """A new client with the administrator's rights."""
        configuration = client.Configuration()
        configuration.host = self.url
        configuration.ssl_ca_cert = str(self.certificates.authority.file)
        configuration.cert_file = str(self.certificates.administrator.certificate)
        configuration.key_file = str(self.certificates.administrator.key)
        return client.ApiClient(configuration)

    def kubeconfig(self, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with the administrator's rights into a folder and returns it."""
        return self._kubeconfig(folder, "administrator", self.certificates.administrator, self.url)

    def kubeconfig_for_user(self, name: str, group: str | None = None, folder: Path | None = None) -> Path:
        """Writes a kubeconfig for a user such as `system:kube-scheduler`, with the rights RBAC gives it."""
        pair = self.certificates.authority.sign(name, group=group)
        return self._kubeconfig(folder, name.replace(":", "-"), pair, self.url)

    def kubeconfig_for_node(self, name: str, group: str | None = None) -> Path:
        """As `kubeconfig_for_user`, for what runs on a node and needs the server's advertised address."""
        pair = self.certificates.authority.sign(name, group=group)
        url = self.url.replace(LOOPBACK, self.addresses.advertised)
        return self._kubeconfig(None, name.replace(":", "-"), pair, url)

    def kubeconfig_for_service_account(self, namespace: str, name: str, folder: Path | None = None) -> Path:
        """Writes a kubeconfig with a token of an existing service account, as a pod of it would have."""
        with self.client() as api:
            token = service_account_token(api, namespace, name)
        target = (folder or self.folder) / f"{namespace}-{name}.kubeconfig"
        return kubeconfig_for_token(target, self.url, self.certificates.authority.file, token, namespace)

    def _kubeconfig(self, folder: Path | None, stem: str, user: KeyPair, url: str) -> Path:
        target = (folder or self.folder) / f"{stem}.kubeconfig"
        return kubeconfig_for_certificate(target, url, self.certificates.authority.file, user)


@contextmanager
def running_control_plane(
    say: Say, addresses: Addresses | None = None, within: Path | None = None
) -> Iterator[ControlPlane]:
    """etcd and an API server, ready; both are gone afterwards, and so are their files.

    Args:
        say: Takes lines about what takes long.
        addresses: Where the API server listens.
        within: Folder for their files' folder; None for the system's temporary one.
    """
    addresses = addresses or Addresses()
    built = programs(PROGRAMS, say)
    with tempfile.TemporaryDirectory(prefix="kvtier-cluster-", dir=within) as name, ExitStack() as stack:
        folder = Path(name)
        certificates = make_certificates(folder, addresses.in_certificate)
        etcd = start_etcd(built["etcd"], folder)
        stack.callback(etcd.process.kill)
        api_server = start_api_server(built["kube-apiserver"], folder, certificates, etcd.url, addresses)
        # nothing of it is kept: it need not wait for those who still watch
        stack.callback(api_server.process.kill)
        yield ControlPlane(api_server.url, certificates, folder, addresses)
