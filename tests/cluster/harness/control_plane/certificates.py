"""Certificates for one short-lived control plane."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFETIME: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of a certificate and its key, PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a folder; `file` is its own, which everything here trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kvtier-tests")
        own = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.crt"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def sign(
        self,
        name: str,
        *,
        group: str | None = None,
        hosts: Sequence[str] = (),
        addresses: Sequence[str] = (),
    ) -> KeyPair:
        """A new certificate.

        Args:
            name: Common name: who Kubernetes takes the bearer for.
            group: Organisation: the group that Kubernetes puts the bearer in.
            hosts: DNS names, of a server.
            addresses: IP addresses, of a server.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, group), self._name, key)
        if names := [
            *(x509.DNSName(host) for host in hosts),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        stem = name.replace(":", "-")
        pair = KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair


@dataclass(frozen=True, slots=True)
class Certificates:
    """Everything the control plane and its administrator need; `service_account_key` signs tokens."""

    authority: Authority
    server: KeyPair
    administrator: KeyPair
    service_account_key: Path


def make_certificates(folder: Path, addresses: Sequence[str]) -> Certificates:
    """Writes a new authority and what it signs into a folder: an API server, an administrator."""
    authority = Authority(folder)
    service_account_key = folder / "service-account.key"
    _write_key(service_account_key, ec.generate_private_key(ec.SECP256R1()))
    return Certificates(
        authority=authority,
        server=authority.sign(
            "kube-apiserver",
            hosts=("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
            addresses=addresses,
        ),
        # The group that Kubernetes binds to cluster-admin.
        administrator=authority.sign("administrator", group="system:masters"),
        service_account_key=service_account_key,
    )


def _name(common_name: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,  # the form of EC key that kube-apiserver reads
            serialization.NoEncryption(),
        )
    )
