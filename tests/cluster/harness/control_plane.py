"""The control plane as the tests use it: what runs, and clients for it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubernetes import client
from tests.cluster.harness.apiserver import start_api_server
from tests.cluster.harness.certificates import Certificates, make_certificates
from tests.cluster.harness.etcd import start_etcd
from tests.cluster.harness.tools import Say, program


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane: its address and what its administrator needs to talk to it."""

    url: str
    certificates: Certificates

    def client(self) -> client.ApiClient:
        """A new client with the administrator's rights."""
        configuration = client.Configuration()
        configuration.host = self.url
        configuration.ssl_ca_cert = str(self.certificates.authority)
        configuration.cert_file = str(self.certificates.administrator.certificate)
        configuration.key_file = str(self.certificates.administrator.key)
        return client.ApiClient(configuration)


@contextmanager
def running_control_plane(say: Say) -> Iterator[ControlPlane]:
    """etcd and an API server, ready; both are gone afterwards, and so are their files."""
    etcd_program, api_server_program = program("etcd", say), program("kube-apiserver", say)
    with tempfile.TemporaryDirectory(prefix="kvtier-cluster-") as name, ExitStack() as stack:
        folder = Path(name)
        certificates = make_certificates(folder)
        etcd = start_etcd(etcd_program, folder)
        stack.callback(etcd.process.stop)
        api_server = start_api_server(api_server_program, folder, certificates, etcd.url)
        stack.callback(api_server.process.stop)
        yield ControlPlane(api_server.url, certificates)
