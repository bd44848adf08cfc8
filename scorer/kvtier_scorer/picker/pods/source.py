"""The ready servers of pods: the protocol of those who find them, changes, and a list that never changes."""

import asyncio
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Protocol

from kvtier_scorer.config.model import PickerConfigError

_LAST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that requests can be sent to; a pod that serves several ports has several, by rank from 0."""

    name: str
    address: str
    rank: int = 0


class EndpointSink(Protocol):
    """Gets the ready servers of pods. One that starts anew is dropped and put again: its cache is empty."""

    def put(self, endpoint: Endpoint) -> None:
        """A server is ready."""

    def drop(self, address: str) -> None:
        """A server is not ready, is leaving or is gone: nothing may be sent there from now on."""


class PodSource(Protocol):
    """Where pods come from."""

    @property
    def synced(self) -> bool:
        """Whether all pods that there are have been passed on; before that, having none means nothing."""

    async def run(self, sink: EndpointSink) -> None:
        """Passes pods on until it is cancelled."""


class StaticPods:
    """The pods of a list; each is its own address by name.

    Raises PickerConfigError: an entry is no `ip:port`, or is there twice, or there is none.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._endpoints = [Endpoint(address, address) for address in map(_address, addresses)]
        known = [endpoint.address for endpoint in self._endpoints]
        if not known:
            raise PickerConfigError("the list of pods is empty; give at least one ip:port")
        for address in known:
            if known.count(address) > 1:
                raise PickerConfigError(f"pod {address} is in the list more than once")
        self.synced = False

    async def run(self, sink: EndpointSink) -> None:
        """Passes the list on, then waits to be cancelled."""
        for endpoint in self._endpoints:
            sink.put(endpoint)
        self.synced = True
        await asyncio.Event().wait()


def address_of(ip: str, port: int) -> str:
    """`ip:port`, an IPv6 address in brackets. Raises ValueError: it is no IP address or no port."""
    parsed = ip_address(ip)
    if not 0 < port <= _LAST_PORT:
        raise ValueError(f"{port} is not a port")
    return f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}"  # noqa: PLR2004 - the version


def _address(text: str) -> str:
    host, _, port = text.strip().rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        host = ""  # which colon is the port's cannot be told
    try:
        return address_of(host.removeprefix("[").removesuffix("]"), int(port))
    except ValueError as error:
        raise PickerConfigError(
            f"pod {text!r} is not an ip:port such as 10.0.0.7:8000 or [fd00::7]:8000; names are not looked up"
        ) from error


@dataclass(frozen=True, slots=True)
class PodInstance:
    """One instance of a pod: another identity at the same address is another engine, with an empty cache.

    It changes with the pod and with each restart of a container. There are no endpoints while it is not
    ready.
    """

    identity: str
    endpoints: Sequence[Endpoint]


@dataclass(slots=True)
class ReadyEndpoints:
    """Turns what is known of each pod into `put` and `drop`, each of them only when something changes.

    Two pods may have one address for a moment: the network gives a dead pod's address to a new one before the
    dead one is deleted. The address then is the newer pod's, and the other one's end changes nothing.
    """

    sink: EndpointSink
    _owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    _addresses: dict[str, list[str]] = field(default_factory=dict)

    def upsert(self, name: str, instance: PodInstance) -> None:
        """A pod is there, new or changed or as before."""
        wanted = [endpoint.address for endpoint in instance.endpoints]
        for address in self._addresses.get(name, ()):
            if address not in wanted:
                self._drop(address, name)
        owner = (name, instance.identity)
        for endpoint in instance.endpoints:
            before = self._owners.get(endpoint.address)
            if before == owner:
                continue
            if before is not None:
                self.sink.drop(endpoint.address)
            self._owners[endpoint.address] = owner
            self.sink.put(endpoint)
        self._addresses[name] = wanted
        if not wanted:
            del self._addresses[name]

    def delete(self, name: str) -> None:
        """A pod was deleted."""
        self.upsert(name, PodInstance("", ()))

    def replace(self, names: AbstractSet[str]) -> None:
        """There are these pods and no others."""
        for name in self._addresses.keys() - names:
            self.delete(name)

    def _drop(self, address: str, name: str) -> None:
        owner = self._owners.get(address)
        if owner is not None and owner[0] == name:
            del self._owners[address]
            self.sink.drop(address)
