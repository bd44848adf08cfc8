"""What is attacked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A server, or the picker that asks the attacker.

    Attributes:
        port: Of its ext_proc service.
        explain_port: Of its explanations; 0 where it has none.
        pod: `ip:port` at which the picker takes the attacker for an engine; empty without one.
        events_port: At which it looks for a pod's KV events.
        replay_port: At which it looks for their replays.
    """

    port: int
    explain_port: int = 0
    pod: str = ""
    events_port: int = 0
    replay_port: int = 0

    @property
    def address(self) -> tuple[str, int]:
        """Of its ext_proc service."""
        return "127.0.0.1", self.port

    @property
    def pod_ip(self) -> str:
        """Where the attacker listens."""
        return self.pod.rpartition(":")[0]
