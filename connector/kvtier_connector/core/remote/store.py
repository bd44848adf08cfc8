"""What the remote tier needs of a store: values under keys, straight between its connection and memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvtier_connector.core.remote.findings import Finding


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the store, and where its bytes lie or are to lie in memory."""

    key: bytes
    # pieces of whole bytes (format B), one after another the value; at least one byte together
    memory: tuple[memoryview, ...]

    @property
    def size_bytes(self) -> int:
        """Of all pieces together."""
        return sum([piece.nbytes for piece in self.memory])


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a store says of itself; of several servers all together."""

    version: str  # for people: product and version
    maxmemory_bytes: int | None  # what it may hold; 0 for no bound, None where it does not say
    used_bytes: int
    policy: str  # what it does when it is full, in its own word; several, with commas, where servers differ
    evicted_keys: int  # since its start
    absent: tuple[str, ...] = ()  # `HOST:PORT` of servers that do not answer, without which the rest serves


class StoreConnection(Protocol):
    """A way to a store, which one thread uses. Each call ends by its time-out, whatever the store does.

    After an error it is closed before the call returns, so that nothing reaches the caller's memory late.
    Raises, from every call: RemoteTimeoutError, RemoteDeniedError (credentials or rights), RemoteMovedError
    (connect again), RemoteFullError (from `put`), or RemoteError for what else is wrong.
    """

    @property
    def is_outdated(self) -> bool:
        """Whether a new connection would find more; asked while nothing is requested."""

    def sizes(self, keys: Sequence[bytes], timeout_s: float) -> list[int]:
        """Return the values' lengths in bytes, 0 for those that are not there.

        A store that evicts what was used longest ago takes this for a use. Nothing may be requested and not
        yet received, as for `put`, `delete` and `facts`.
        """

    def request(self, value: Value) -> None:
        """Ask for a value; its memory is the connection's until it is received or the connection closed."""

    def receive(self, timeout_s: float) -> bool:
        """Receive what was requested first of all that is not received yet.

        Tells whether its memory is filled: it is left alone where the value is absent or of another length.
        """

    def put(self, value: Value, ttl_s: int, timeout_s: float) -> None:
        """Store a value, in the place of what there was; it expires after `ttl_s` seconds, or never for 0."""

    def delete(self, keys: Sequence[bytes], timeout_s: float) -> None:
        """Remove values; those that are not there are no error."""

    def facts(self, timeout_s: float) -> ServerFacts:
        """Ask the store what it is and holds."""

    def close(self) -> None:
        """End the connection; what was requested is given up. May be called again."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a store is reached, whatever its engine."""

    url: str  # as `remote_url`
    credentials_path: str = ""  # folder with `password` and perhaps `username`; empty for none
    ca_path: str = ""  # certificates that sign the server's; empty for the system's
    timeout_s: float = 5.0  # of connecting to one server, all together but its name's look-up


class Store(Protocol):
    """A store of one engine, which need not be there."""

    @property
    def servers(self) -> tuple[str, ...]:
        """`HOST:PORT` of those that the URL names."""

    def connect(self) -> StoreConnection:
        """Connect to it. Raises RemoteError and those below it."""

    def rights(self, prefix: bytes) -> Iterable[Finding]:
        """Tell what of the keys that begin so is granted, of that which a tier asks for."""
