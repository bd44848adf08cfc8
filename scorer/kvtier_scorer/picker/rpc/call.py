"""What a service implements, and what it is given."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kvtier_scorer.picker.rpc.status import Status


class Reply(Protocol):
    """The way back to the client of one call. What is sent after its end or the client's is dropped."""

    def send(self, messages: Iterable[bytes]) -> None:
        """Send messages."""

    def finish(self, status: Status = Status.OK, message: str = "") -> None:
        """End the call."""


class Call(Protocol):
    """One call. Any of its methods may raise CallError, which ends it."""

    def message(self, message: bytes) -> None:
        """The client sent a message."""

    def oversized(self, limit_bytes: int) -> bool:
        """The client began a message that is too long; True if the call has answered it itself."""

    def half_closed(self) -> None:
        """The client sends nothing more."""

    def gone(self) -> None:
        """The call is over, in whatever way; called once, always."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service.

    Attributes:
        open: Begins a call.
        max_message_bytes: A longer message is refused.
        lasting: The call ends when the client ends it, such as a watch: draining ends it at once.
    """

    open: Callable[[Reply], Call]
    max_message_bytes: int
    lasting: bool = False


Methods = Mapping[bytes, Method]
"""By path, such as `/grpc.health.v1.Health/Check`."""
