"""Several servers behind one connection, of a cluster or not: each key goes to the one that has it."""

import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.slots import SlotMap, by_owner, slot_of
from kvtier_connector.core.remote.store import ServerFacts, Value

LACKING_S: Final = 10.0
"""A connection that lacks a server ends after so long, for the next one to have it."""


class ClusterConnection:
    """A StoreConnection to all servers of a map, which it owns; None stands for one that is not there.

    What is in such a one's slots is absent and not stored.
    """

    def __init__(self, slots: SlotMap, primaries: Sequence[RespConnection | None]) -> None:
        self._slots = slots
        self._primaries = primaries
        self._requested = deque[RespConnection | None]()
        self._made_s = time.monotonic()
        self._is_complete = -1 not in slots.owners and None not in primaries

    @property
    def is_outdated(self) -> bool:
        """Whether keys have another server now, or some time ago lacked one."""
        own = [primary for primary in self._primaries if primary]
        if any(primary.is_outdated for primary in own):
            return True
        is_lacking = not self._is_complete or any(primary.is_moving for primary in own)
        return is_lacking and time.monotonic() >= self._made_s + LACKING_S

    def sizes(self, keys: Sequence[bytes], timeout_s: float) -> list[int]:
        """Return the values' lengths; all servers are asked before one has to answer."""
        with self._closed_by_errors(timeout_s) as deadline_s:
            sizes = [0] * len(keys)
            shares = self._shares(keys)
            for connection, places in shares.items():
                connection.ask_sizes([keys[place] for place in places], _left_s(deadline_s))
            for connection, places in shares.items():
                answers = connection.answered_sizes(len(places), _left_s(deadline_s))
                for place, size in zip(places, answers, strict=True):
                    sizes[place] = size
            return sizes

    def request(self, value: Value) -> None:
        """Ask for a value."""
        with self._closed_by_errors():
            connection = self._owner(value.key)
            if connection:
                connection.request(value)
            self._requested.append(connection)

    def receive(self, timeout_s: float) -> bool:
        """Receive what was requested first."""
        with self._closed_by_errors():
            if not self._requested:
                raise ValueError("nothing is requested")
            connection = self._requested.popleft()
            return connection.receive(timeout_s) if connection else False

    def put(self, value: Value, ttl_s: int, timeout_s: float) -> None:
        """Store a value."""
        with self._closed_by_errors():
            connection = self._owner(value.key)
            if connection:
                connection.put(value, ttl_s, timeout_s)

    def delete(self, keys: Sequence[bytes], timeout_s: float) -> None:
        """Remove values."""
        with self._closed_by_errors(timeout_s) as deadline_s:
            for connection, places in self._shares(keys).items():
                connection.delete([keys[place] for place in places], _left_s(deadline_s))

    def facts(self, timeout_s: float) -> ServerFacts:
        """Ask all servers what they are and hold."""
        with self._closed_by_errors(timeout_s) as deadline_s:
            said = [primary.facts(_left_s(deadline_s)) for primary in self._primaries if primary]
            bounds = [server.maxmemory_bytes or 0 for server in said]
            return ServerFacts(
                version=", ".join(sorted({server.version for server in said})),
                maxmemory_bytes=sum(bounds) if all(bounds) else 0,
                used_bytes=sum(server.used_bytes for server in said),
                policy=",".join(sorted({server.policy for server in said})),
                evicted_keys=sum(server.evicted_keys for server in said),
                absent=tuple(
                    str(address)
                    for address, primary in zip(self._slots.primaries, self._primaries, strict=True)
                    if primary is None
                ),
            )

    def close(self) -> None:
        """Close the connections to all servers."""
        self._requested.clear()
        for connection in self._primaries:
            if connection:
                connection.close()

    @contextmanager
    def _closed_by_errors(self, timeout_s: float = 0.0) -> Generator[float]:
        """What goes wrong with one server closes all connections; yields the deadline."""
        try:
            yield time.monotonic() + timeout_s
        except BaseException:
            self.close()
            raise

    def _owner(self, key: bytes) -> RespConnection | None:
        place = self._slots.owners[slot_of(key)]
        return self._primaries[place] if place >= 0 else None

    def _shares(self, keys: Sequence[bytes]) -> Mapping[RespConnection, list[int]]:
        shares = by_owner(self._slots, keys).items()
        owned = ((self._primaries[owner], places) for owner, places in shares if owner >= 0)
        return {connection: places for connection, places in owned if connection}


def _left_s(deadline_s: float) -> float:
    """Return what is left of a time-out; nothing left is for the connection to say."""
    return max(0.0, deadline_s - time.monotonic())
