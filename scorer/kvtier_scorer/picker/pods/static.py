"""Pods from a list that never changes."""

import asyncio
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from kvtier_scorer.config.errors import PickerConfigError
from kvtier_scorer.picker.pods.source import Endpoint, EndpointSink

_LAST_PORT: Final = 65535


class StaticPods:
    """The pods of a list; each is its own address by name.

    Args:
        addresses: `ip:port` each.

    Raises:
        PickerConfigError: One of them is no such address, or is there twice, or there is none.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._endpoints = [Endpoint(address, address) for address in map(_checked, addresses)]
        known = [each.address for each in self._endpoints]
        if not known:
            raise PickerConfigError("the list of pods is empty; give at least one ip:port")
        for address in known:
            if known.count(address) > 1:
                raise PickerConfigError(f"pod {address} is in the list more than once")
        self._passed_on = False

    @property
    def synced(self) -> bool:
        """Whether the list has been passed on."""
        return self._passed_on

    async def run(self, sink: EndpointSink) -> None:
        """Passes the list on, then waits to be cancelled."""
        for endpoint in self._endpoints:
            sink.put(endpoint)
        self._passed_on = True
        await asyncio.Event().wait()


def address_of(ip: str, port: int) -> str:
    """`ip:port`, an IPv6 address in brackets.

    Raises:
        ValueError: It is no IP address or no port.
    """
    parsed = ip_address(ip)
    if not 0 < port <= _LAST_PORT:
        raise ValueError(f"{port} is not a port")
    return f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}"  # noqa: PLR2004 - the version


def _checked(text: str) -> str:
    host, _, port = text.strip().rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        host = ""  # which colon is the port's cannot be told
    try:
        return address_of(host.removeprefix("[").removesuffix("]"), int(port))
    except ValueError as error:
        raise PickerConfigError(
            f"pod {text!r} is not an ip:port such as 10.0.0.7:8000 or [fd00::7]:8000; names are not looked up"
        ) from error
