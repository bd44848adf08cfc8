"""Which servers are ready now, passed on as changes."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kvtier_scorer.picker.pods.source import Endpoint, EndpointSink


@dataclass(frozen=True, slots=True)
class PodInstance:
    """One instance of a pod: another identity at the same address is another engine, with an empty cache.

    Attributes:
        identity: Changes with the pod and with each restart of a container.
        endpoints: Its servers; none while it is not ready.
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
        wanted = [each.address for each in instance.endpoints]
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
