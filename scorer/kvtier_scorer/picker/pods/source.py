"""What a source of pods tells, whatever it knows them from."""

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


class PodSink(Protocol):
    """Who keeps the pods. A pod that starts anew is dropped and put again: its cache is another one."""

    def put(self, endpoint: Endpoint) -> None:
        """It is ready."""

    def drop(self, address: str) -> None:
        """It is not ready, is leaving or is gone: nothing may be sent there from now on."""


class PodSource(Protocol):
    """Where pods come from."""

    @property
    def synced(self) -> bool:
        """Whether all pods that there are have been told; before that, none is no news."""

    async def run(self, sink: PodSink) -> None:
        """Tells of pods until it is cancelled."""
