"""A store that speaks the Redis protocol, as a URL names it."""

from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import Self

from kvtier_connector.core.remote.findings import Finding
from kvtier_connector.core.remote.resp.connect import Access, connect
from kvtier_connector.core.remote.resp.rights import rights
from kvtier_connector.core.remote.resp.url import parse_url
from kvtier_connector.core.remote.store import StoreConnection, StoreSettings


@dataclass(frozen=True, slots=True)
class RespStore:
    """A server, or a cluster of them."""

    access: Access

    @classmethod
    def of(cls, settings: StoreSettings) -> Self:
        """Raises SettingError: the URL is not one of such a store."""
        url = parse_url(settings.url)
        return cls(Access(url, settings.credentials_path, settings.ca_path, settings.timeout_s))

    @property
    def servers(self) -> tuple[str, ...]:
        """Those that the URL names."""
        return tuple(map(str, self.access.url.addresses))

    def connect(self) -> StoreConnection:
        """Connect to the first server that answers, or to the cluster that it is of."""
        return connect(self.access)

    def rights(self, prefix: bytes) -> Iterable[Finding]:
        """Tell which commands the server would refuse."""
        return rights(self.access, prefix)
