"""Certificates for one short-lived control plane."""

import datetime as dt
import ipaddress
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


@dataclass(frozen=True, slots=True)
class Certificates:
    """Everything the control plane and its administrator need; `service_account_key` signs tokens."""

    authority: Path
    server: KeyPair
    administrator: KeyPair
    service_account_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Writes a new authority and what it signs into a folder: a server on loopback, an administrator."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    name = _name("kvtier-tests")
    authority = (
        _builder(name, name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    authority_file = folder / "ca.crt"
    authority_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))

    def signed(file_name: str, subject: x509.Name) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(subject, authority.subject, key)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
                ),
                critical=False,
            )
            .sign(authority_key, hashes.SHA256())
        )
        pair = KeyPair(folder / f"{file_name}.crt", folder / f"{file_name}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    service_account_key = folder / "service-account.key"
    _write_key(service_account_key, ec.generate_private_key(ec.SECP256R1()))
    return Certificates(
        authority=authority_file,
        server=signed("server", _name("kube-apiserver")),
        # The group that Kubernetes binds to cluster-admin.
        administrator=signed("administrator", _name("administrator", organization="system:masters")),
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
