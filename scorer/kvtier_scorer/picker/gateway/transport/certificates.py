"""TLS of a gRPC port: a certificate from files that may be renewed, or one of its own.

Gateways do not verify a picker's certificate (Gateway API inference extension, docs/proposals/004), so one
that nobody has signed is enough to encrypt.
"""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kvtier_scorer.config.model import PickerConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

# the names that a Secret of type kubernetes.io/tls has, and cert-manager writes
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_VALID: Final = timedelta(days=3650)
_NAME: Final = "kvtier-picker"


class Certificates:
    """What a port proves itself with: tls.crt and tls.key of a folder, or what nobody has signed.

    Raises PickerConfigError: the folder has no certificate and key that belong together.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._loaded: tuple[int, ...] = ()
        self._renewed = False
        if folder is None:
            with tempfile.TemporaryDirectory() as own:
                make_certificate(Path(own))
                self._configuration = _load(Path(own))
        else:
            self.renew()
        # the stubs do not know that the function may return None
        to_use = cast("Callable[[], grpc.ServerCertificateConfiguration]", self._to_use)
        self.credentials = grpc.dynamic_ssl_server_credentials(self._configuration, to_use)

    def renew(self) -> bool:
        """Take the files as they are now, for the connections to come; whether they are others than before.

        Raises PickerConfigError: they do not belong together; what was there before stays in use.
        """
        if self._folder is None:
            return False
        try:
            now = tuple((self._folder / name).stat().st_mtime_ns for name in (_CERTIFICATE, _KEY))
            if now == self._loaded:
                return False
            self._configuration = _load(self._folder)
        except OSError as error:  # ssl.SSLError is one
            raise PickerConfigError(
                f"--cert-path: {self._folder} needs a {_CERTIFICATE} and the {_KEY} that belongs to it: "
                f"{error}"
            ) from error
        self._loaded = now
        self._renewed = True
        return True

    def _to_use(self) -> grpc.ServerCertificateConfiguration | None:
        """What grpcio asks for with each handshake, from a thread of its own; None for the same as before."""
        if not self._renewed:
            return None
        self._renewed = False
        return self._configuration


def _load(folder: Path) -> grpc.ServerCertificateConfiguration:
    certificate, key = (folder / _CERTIFICATE).read_bytes(), (folder / _KEY).read_bytes()
    # grpcio takes anything, and says so only to clients
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(folder / _CERTIFICATE, folder / _KEY)
    return grpc.ssl_server_certificate_configuration([(key, certificate)])


def make_certificate(folder: Path) -> None:
    """Write a certificate that nobody has signed, and its key, into a folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / _CERTIFICATE).write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / _KEY).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
