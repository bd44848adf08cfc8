"""What kind of place an IP address is, whichever way it is written."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""IPv6 addresses that end in one of IPv4: of a translator (RFC 6052), and of old (RFC 4291, 2.5.5.1)."""

Address = IPv4Address | IPv6Address


def is_public(text: str) -> bool:
    """Whether an address is one of the Internet: of no machine, no link and no private network.

    Raises:
        ValueError: It is no address.
    """
    return all(each.is_global and not each.is_multicast for each in meanings(ip_address(text)))


def meanings(address: Address) -> Iterator[Address]:
    """Where packets to an address may end: there, or at the IPv4 address that stands in it."""
    if isinstance(address, IPv4Address):
        yield address
        return
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.packed[:14] != bytes(14):  # `::` and `::1` are addresses of their own
        inner = next((IPv4Address(address.packed[12:]) for each in _TRANSLATED if address in each), None)
    if address.ipv4_mapped is None:
        yield address
    if inner is not None:
        yield inner
