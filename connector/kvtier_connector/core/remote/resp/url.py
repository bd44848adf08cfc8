"""The setting `remote_url` for stores that speak the Redis protocol."""

from dataclasses import dataclass

from kvtier_common.redis_protocol import PORT, SCHEMES
from kvtier_connector.core.remote.urls import Address, parse_address, url_error


@dataclass(frozen=True, slots=True)
class RespUrl:
    """What a URL says: one server, or several, of a cluster or each with its part."""

    addresses: tuple[Address, ...]
    tls: bool
    database: int


def parse_url(text: str) -> RespUrl:
    """Read `redis://HOST[:PORT][,HOST[:PORT]...][/DATABASE]`, or one of rediss, valkey and valkeys.

    Raises SettingError: it is something else.
    """
    scheme, _, rest = text.partition("://")
    hosts, _, database = rest.partition("/")
    if "?" in rest or "#" in rest or not (database or "0").isdecimal() or not rest.isprintable():
        raise url_error(f"got {text!r}, must end with its hosts or a database's number, such as /0")
    addresses = tuple(
        parse_address(text, host, PORT, "redis://cache.example:6379") for host in hosts.split(",")
    )
    if int(database or 0) and len(addresses) > 1:
        raise url_error(f"got {text!r}, but a cluster has database 0 alone")
    return RespUrl(addresses, SCHEMES[scheme], int(database or 0))
