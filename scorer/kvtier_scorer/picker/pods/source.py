"""The ready servers of pods, and the protocol of those who find them."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that requests can be sent to; a pod that serves several ports has several.

    Attributes:
        name: The pod's name.
        address: `ip:port`, an IPv6 address in brackets.
        rank: Which of the pod's servers it is, from 0.
    """

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
