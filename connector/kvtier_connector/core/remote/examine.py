"""Whether a store will do: it answers, lets us do what a tier asks of it, is bounded, and how fast it is."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final

from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.remote.facts import facts_judged
from kvtier_connector.core.remote.findings import Finding, Level
from kvtier_connector.core.remote.store import Store, StoreConnection, Value
from kvtier_connector.errors import RemoteDeniedError, RemoteError, RemoteTlsError

_VALUE_BYTES: Final = (
    4 << 20
) - 64  # below jemalloc's class: a value of a power of two takes 1.25 times as much
_VALUES: Final = 16
MOVED_BYTES: Final = _VALUES * _VALUE_BYTES
_TTL_S: Final = 60  # of what is written here, should it not be removed
_ROUND_TRIPS: Final = 20
_TO_DO: Final[tuple[tuple[type[RemoteError], str, str], ...]] = (
    (
        RemoteDeniedError,
        "remote_credentials_path",
        "see that the server knows this user and password, and what it lets them do",
    ),
    (RemoteTlsError, "remote_ca_path", "see who signed the server's certificate, and for which name"),
    (RemoteError, "remote_url", "see that a server serves there, and that the network lets this through"),
)
"""The setting that an error is about, and what a person can do; the first that fits."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What there is to say of a store; rates are 0 where nothing could be moved."""

    findings: tuple[Finding, ...]
    round_trip_s: float = 0.0
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0


def examine(
    store: Store,
    share: str,  # the name that keys begin with
    capacity_bytes: int,  # what the tier is told that the store holds
    timeout_s: float,  # of each step
    *,
    moving: bool = True,
) -> Examination:
    """Ask a store everything and, if `moving`, move 64 MiB there and back.

    Raises nothing for what is wrong with it.
    """
    try:
        connection = store.connect()
    except RemoteError as error:
        return Examination((_failure(error),))
    prefix = b"kvtier:%b:" % share.encode()
    with closing(connection):
        answering = store.servers[0] if len(store.servers) == 1 else f"one of {', '.join(store.servers)}"
        findings = [Finding(Level.GOOD, f"{answering} answers"), *store.rights(prefix)]
        try:
            findings += facts_judged(connection.facts(timeout_s), capacity_bytes)
            if not moving:
                return Examination(tuple(findings))
            round_trip_s, written_s, read_s = _moved(connection, prefix, timeout_s)
        except RemoteError as error:
            return Examination((*findings, _failure(error)))
    reading, writing = MOVED_BYTES / read_s, MOVED_BYTES / written_s
    findings.append(
        Finding(
            Level.GOOD,
            f"{format_bytes(MOVED_BYTES)} there and back by one connection: written at {writing / 1e9:.2f} "
            f"GB/s, read at {reading / 1e9:.2f} GB/s; a round trip takes {round_trip_s * 1e3:.2f} ms",
        )
    )
    return Examination(tuple(findings), round_trip_s, reading, writing)


def _failure(error: RemoteError) -> Finding:
    setting, to_do = next((setting, to_do) for kind, setting, to_do in _TO_DO if isinstance(error, kind))
    why = str(error).removeprefix(f"kv_connector_extra_config.{setting}: ")
    return Finding(Level.BAD, f"{why}; {to_do}", setting)


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
