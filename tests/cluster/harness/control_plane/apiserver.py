"""kube-apiserver: on loopback, or where the pods of a node can reach it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.control_plane.audit import AUDIT_LOG, write_policy
from tests.cluster.harness.control_plane.certificates import Certificates
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the API server is and what it gives out.

    Attributes:
        advertised: The address that nodes and pods reach it at; loopback without a node.
        services_cidr: Range of the Services' ClusterIPs: two of each thousand resources' Services have room.
        first_service: The first address of that range, which the Service `kubernetes` gets.
    """

    advertised: str = LOOPBACK
    services_cidr: str = "10.96.0.0/16"
    first_service: str = "10.96.0.1"

    @property
    def in_certificate(self) -> tuple[str, ...]:
        """All the addresses that a client may know the server by."""
        return tuple(dict.fromkeys((LOOPBACK, self.advertised, self.first_service)))


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running API server."""

    url: str
    process: Process


def start_api_server(
    program: Path, folder: Path, certificates: Certificates, etcd_url: str, addresses: Addresses
) -> ApiServer:
    """Starts an API server with its log in a folder and waits until it says that it is ready."""
    (port,) = free_ports(1)
    url = f"https://{LOOPBACK}:{port}"
    on_loopback = addresses.advertised == LOOPBACK
    process = Process(
        [
            program,
            f"--etcd-servers={etcd_url}",
            f"--bind-address={LOOPBACK if on_loopback else '0.0.0.0'}",  # noqa: S104 - pods come from elsewhere
            f"--advertise-address={addresses.advertised}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificates.server.certificate}",
            f"--tls-private-key-file={certificates.server.key}",
            f"--client-ca-file={certificates.authority.file}",
            f"--kubelet-client-certificate={certificates.administrator.certificate}",
            f"--kubelet-client-key={certificates.administrator.key}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={certificates.service_account_key}",
            f"--service-account-signing-key-file={certificates.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={addresses.services_cidr}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            # on by default from 1.35, and from 1.36
            "--feature-gates=ImageVolume=true,MutatingAdmissionPolicy=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
            f"--audit-policy-file={write_policy(folder)}",
            f"--audit-log-path={folder / AUDIT_LOG}",
            # A loopback address may not be an endpoint; nobody is there to use it either.
            f"--endpoint-reconciler-type={'none' if on_loopback else 'lease'}",
        ],
        folder / "kube-apiserver.log",
    )
    process.wait_until(
        lambda: answers_ok(f"{url}/readyz", certificates.authority.file, certificates.administrator)
    )
    return ApiServer(url, process)
