"""Where a pod publishes its KV events."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventEndpoint:
    """A ZeroMQ endpoint.

    Attributes:
        host: An IP address.
        port: The port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EventPorts:
    """How the publishers are configured, the same on every pod (vllm/config/kv_events.py).

    A pod that serves several ports runs a data-parallel rank behind each, and vLLM adds the rank to
    both ports.

    Attributes:
        port: Of rank 0.
        replay_port: Of rank 0; None where missed events cannot be asked for again.
        topic: Prefix of the topics to take.
    """

    port: int = 5557
    replay_port: int | None = None
    topic: str = ""

    def events(self, address: str, rank: int) -> EventEndpoint:
        """The ZeroMQ endpoint of the events of the pod at `address` (`ip:port`)."""
        return _endpoint(address, self.port + rank)

    def replay(self, address: str, rank: int) -> EventEndpoint | None:
        """The ZeroMQ endpoint of its replays."""
        return None if self.replay_port is None else _endpoint(address, self.replay_port + rank)


def _endpoint(address: str, port: int) -> EventEndpoint:
    return EventEndpoint(address.rpartition(":")[0].removeprefix("[").removesuffix("]"), port)
