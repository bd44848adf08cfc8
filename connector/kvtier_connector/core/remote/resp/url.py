"""The setting `remote_url` for stores that speak the Redis protocol."""

from dataclasses import dataclass
from typing import Final

from kvtier_connector.errors import SettingError

_SCHEMES: Final = {"redis": False, "valkey": False, "rediss": True, "valkeys": True}
"""And whether TLS is spoken."""
_PORT: Final = 6379
MOST_PORTS: Final = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RespUrl:
    """What a URL says: one server, or several of one cluster."""

    addresses: tuple[Address, ...]
    tls: bool
    database: int


def parse_url(text: str) -> RespUrl:
    """Read `redis://HOST[:PORT][,HOST[:PORT]...][/DATABASE]`, or one of rediss, valkey and valkeys.

    Raises SettingError: it is something else, or has a user or password, which it does not repeat.
    """
    scheme, separator, rest = text.partition("://")
    if "@" in text:
        raise _bad("has a user or password; name them in the files of remote_credentials_path")
    if not separator or scheme not in _SCHEMES:
        raise _bad(f"got {text!r}, must begin with {', '.join(f'{name}://' for name in _SCHEMES)}")
    hosts, _, database = rest.partition("/")
    if "?" in rest or "#" in rest or not (database or "0").isdecimal() or not rest.isprintable():
        raise _bad(f"got {text!r}, must end with its hosts or a database's number, such as /0")
    addresses = tuple(_address(text, host) for host in hosts.split(","))
    if int(database or 0) and len(addresses) > 1:
        raise _bad(f"got {text!r}, but a cluster has database 0 alone")
    return RespUrl(addresses, _SCHEMES[scheme], int(database or 0))


def _address(text: str, said: str) -> Address:
    host, colon, port = said.rpartition(":") if not said.endswith("]") else (said, "", "")
    if not colon:
        host, port = said, str(_PORT)
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    if not bare or " " in bare or "[" in bare or (":" in bare) != bracketed:
        raise _bad(f"got {text!r}, must name a host, such as redis://cache.example:6379")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= MOST_PORTS):
        raise _bad(f"got {text!r}, must have a port from 1 to {MOST_PORTS} behind {host}:")
    return Address(bare, int(port))


def _bad(why: str) -> SettingError:
    return SettingError(f"kv_connector_extra_config.remote_url: {why}")
