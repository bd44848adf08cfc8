"""Whether a store will do: it answers, lets us do what a tier asks of it, is bounded, and how fast it is."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final

from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.remote.findings import Finding, Level, facts_judged
from kvtier_connector.core.remote.resp.connect import Access, connect, connect_one
from kvtier_connector.core.remote.resp.connection import Reply
from kvtier_connector.core.remote.store import StoreConnection, Value
from kvtier_connector.errors import RemoteDeniedError, RemoteError

_VALUE_BYTES: Final = (
    4 << 20
) - 64  # below jemalloc's class: a value of a power of two takes 1.25 times as much
_VALUES: Final = 16
MOVED_BYTES: Final = _VALUES * _VALUE_BYTES
_TTL_S: Final = 60  # of what is written here, should it not be removed
_ROUND_TRIPS: Final = 20
_USED: Final = {  # commands, and what stands behind the key
    b"GET": (),
    b"SET": (b"value", b"EX", b"60"),
    b"STRLEN": (),
    b"DEL": (),
}


@dataclass(frozen=True, slots=True)
class Examination:
    """What there is to say of a store; rates are 0 where nothing could be moved."""

    findings: tuple[Finding, ...]
    round_trip_s: float = 0.0
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0


def examine(
    access: Access,
    share: str,  # the name that keys begin with
    capacity_bytes: int,  # what the tier is told that the store holds
    timeout_s: float,  # of each step
) -> Examination:
    """Ask a store everything, and move 64 MiB there and back. Raises nothing for what is wrong with it."""
    try:
        connection = connect(access)
    except RemoteError as error:
        return Examination((Finding(Level.BAD, str(error)),))
    prefix = b"kvtier:%b:" % share.encode()
    with closing(connection):
        findings = [Finding(Level.GOOD, f"{access.url.addresses[0]} answers"), *rights(access, prefix)]
        try:
            findings += facts_judged(connection.facts(timeout_s), capacity_bytes)
            round_trip_s, written_s, read_s = _moved(connection, prefix, timeout_s)
        except RemoteError as error:
            return Examination((*findings, Finding(Level.BAD, str(error))))
    reading, writing = MOVED_BYTES / read_s, MOVED_BYTES / written_s
    findings.append(
        Finding(
            Level.GOOD,
            f"{format_bytes(MOVED_BYTES)} there and back by one connection: written at {writing / 1e9:.2f} "
            f"GB/s, read at {reading / 1e9:.2f} GB/s; a round trip takes {round_trip_s * 1e3:.2f} ms",
        )
    )
    return Examination(tuple(findings), round_trip_s, reading, writing)


def rights(access: Access, prefix: bytes) -> Iterator[Finding]:
    """Tell which commands the server would refuse these credentials (ACL DRYRUN, of Redis 7 and Valkey)."""
    key = prefix + b"{examine}:0"
    try:
        user = _asked(access, b"ACL", b"WHOAMI")
        lacking = [
            command.decode()
            for command, behind in _USED.items()
            if _asked(access, b"ACL", b"DRYRUN", _text(user), command, key, *behind) != b"OK"
        ]
    except RemoteDeniedError:
        yield Finding(
            Level.NOTE, "rights: not told, as these credentials may not ask (ACL WHOAMI, ACL DRYRUN)"
        )
        return
    except RemoteError as error:
        yield Finding(Level.NOTE, f"rights: not told, as the server cannot say: {error}")
        return
    keys = f"{prefix.decode()}*"
    if lacking:
        yield Finding(
            Level.BAD,
            f"rights: {', '.join(lacking)} of {keys} denied; grant them: ACL SETUSER USER ~{keys} "
            + " ".join(f"+{command.lower()}" for command in lacking),
        )
    else:
        yield Finding(Level.GOOD, f"rights: may read and write {keys}")


def _asked(access: Access, *words: bytes) -> Reply:
    """Ask by a connection of its own, which an error's reply closes."""
    with closing(connect_one(access, access.url.addresses[0])) as connection:
        return connection.ask(*words, timeout_s=access.timeout_s)


def _text(reply: Reply) -> bytes:
    return reply if isinstance(reply, bytes) else b""


def _moved(connection: StoreConnection, prefix: bytes, timeout_s: float) -> tuple[float, float, float]:
    """Return the seconds of a round trip, of writing and of reading; what is written is removed."""
    written = memoryview(bytearray(Random(0).randbytes(_VALUE_BYTES)))  # noqa: S311 - any bytes do
    read = memoryview(bytearray(_VALUE_BYTES))
    keys = [prefix + b"examine:{%d}:0" % number for number in range(_VALUES)]

    def write() -> None:
        for key in keys:
            connection.put(Value(key, (written,)), _TTL_S, timeout_s)

    def read_back() -> None:
        for key in keys:
            connection.request(Value(key, (read,)))
            if not connection.receive(timeout_s):
                raise RemoteError("a value that was written is gone: the store is full, or another deletes")

    written_s = _seconds(write)
    read_s = _seconds(read_back)
    if read != written:
        raise RemoteError("a value came back other than it was written")
    trips_s = [_seconds(lambda: connection.sizes(keys[:1], timeout_s)) for _ in range(_ROUND_TRIPS)]
    connection.delete(keys, timeout_s)
    return median(trips_s), written_s, read_s


def _seconds(deed: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    deed()
    return time.perf_counter() - start_s
