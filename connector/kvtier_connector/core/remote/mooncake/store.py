"""A Mooncake store, as a URL names it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from typing_extensions import Self

from kvtier_connector.core.remote.findings import Finding, Level
from kvtier_connector.core.remote.mooncake.connection import connect
from kvtier_connector.core.remote.store import StoreConnection, StoreSettings
from kvtier_connector.core.remote.urls import Address, parse_address, url_error
from kvtier_connector.errors import SettingError

MOONCAKE_SCHEME: Final = "mooncake"
_PORT: Final = 50051
"""Of a master that was told no other."""


@dataclass(frozen=True, slots=True)
class MooncakeStore:
    """A master, and the processes that lend it memory."""

    master: Address
    timeout_s: float

    @classmethod
    def of(cls, settings: StoreSettings) -> Self:
        """Raises SettingError: the URL is not `mooncake://HOST[:PORT]`, or Mooncake cannot what is asked."""
        for name, value in (
            ("remote_credentials_path", settings.credentials_path),
            ("remote_ca_path", settings.ca_path),
        ):
            if value:
                raise SettingError(
                    f"kv_connector_extra_config.{name}: a Mooncake store has neither credentials nor TLS; "
                    "leave it out"
                )
        hosts = settings.url.partition("://")[2]
        if "/" in hosts or "," in hosts or not hosts.isprintable():
            raise url_error(f"got {settings.url!r}, must be mooncake://HOST:PORT of one master")
        example = "mooncake://master.example:50051"
        return cls(parse_address(settings.url, hosts, _PORT, example), settings.timeout_s)

    @property
    def servers(self) -> tuple[str, ...]:
        """The master."""
        return (str(self.master),)

    def connect(self) -> StoreConnection:
        """Start a client."""
        return connect(self.master, self.timeout_s)

    def rights(self, prefix: bytes) -> Iterable[Finding]:
        """Tell who may write."""
        del prefix
        yield Finding(
            Level.NOTE,
            "rights: whoever reaches the master may read and write all; keep it in a network of its own",
        )
