"""kube-apiserver on loopback."""

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.certificates import Certificates
from tests.cluster.harness.ports import free_ports
from tests.cluster.harness.process import Process


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running API server."""

    url: str
    process: Process


def start_api_server(program: Path, folder: Path, certificates: Certificates, etcd_url: str) -> ApiServer:
    """Starts an API server with its log in a folder and waits until it says that it is ready."""
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    process = Process(
        [
            program,
            f"--etcd-servers={etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificates.server.certificate}",
            f"--tls-private-key-file={certificates.server.key}",
            f"--client-ca-file={certificates.authority}",
            f"--service-account-key-file={certificates.service_account_key}",
            f"--service-account-signing-key-file={certificates.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
        ],
        folder / "kube-apiserver.log",
    )
    context = ssl.create_default_context(cafile=certificates.authority)
    context.load_cert_chain(certificates.administrator.certificate, certificates.administrator.key)
    process.wait_until(lambda: _is_ready(url, context))
    return ApiServer(url, process)


def _is_ready(url: str, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2, context=context) as answer:  # noqa: S310 - our own server
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
