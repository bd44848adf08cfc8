"""What the URLs of all stores have: servers."""

from dataclasses import dataclass
from typing import Final

from kvtier_connector.errors import SettingError

MOST_PORTS: Final = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(url: str, said: str, usual_port: int, example: str) -> Address:
    """Read `HOST[:PORT]`, a part of a URL. Raises SettingError: it is something else."""
    host, colon, port = said.rpartition(":") if not said.endswith("]") else (said, "", "")
    if not colon:
        host, port = said, str(usual_port)
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if not bare or " " in bare or "[" in bare or (":" in bare) != bracketed:
        raise url_error(f"got {url!r}, must name a host, such as {example}")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= MOST_PORTS):
        raise url_error(f"got {url!r}, must have a port from 1 to {MOST_PORTS} behind {host}:")
    return Address(bare, int(port))


def url_error(why: str) -> SettingError:
    """Return an error of the setting `remote_url`."""
    return SettingError(f"kv_connector_extra_config.remote_url: {why}")
