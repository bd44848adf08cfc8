"""Asks an engine for its /metrics with bounds: whoever answers there costs neither memory nor time."""

import asyncio
from collections.abc import Iterable
from typing import Final

import aiohttp

from kvtier_common.http.answer import LONG_BYTES, LargeReadSlot
from kvtier_common.metrics.text import MOST_BYTES, Families, MetricsText, MetricsTextError

_OK: Final = 200
_ERROR: Final = 400
_PIECE_BYTES: Final = 64 << 10  # what is read at a time; others have their turn between two of them
_HEADERS: Final = {
    "Accept": "text/plain;version=0.0.4",
    # packing 60 KB takes an engine's server more time than sending them, and unpacking them has no bound
    "Accept-Encoding": "identity",
}


class MetricsAnswerError(ValueError):
    """The answer is not one that an engine gives; the message says what it is, in one line."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind  # what sort of trouble it is, the same for as long as only its details change
        super().__init__(message)


class NoMetricsError(MetricsAnswerError):
    """Whoever answers says that there are no metrics: a pod that is on its way, or serves something else."""


def metrics_session(timeout_s: float, user_agent: str, kept_s: float | None = None) -> aiohttp.ClientSession:
    """A session for asking engines; nothing is unpacked, remembered or taken from the environment.

    An idle connection is kept for `kept_s`, one an engine; with None each is closed after its answer.
    """
    kept = {"force_close": True} if kept_s is None else {"keepalive_timeout": kept_s}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=1, **kept),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers={**_HEADERS, "User-Agent": user_agent},
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=_PIECE_BYTES,
    )


async def read_metrics(
    session: aiohttp.ClientSession,  # as `metrics_session` makes it
    # `ip:port`, an IPv6 address in brackets; after `https://` one with any certificate: no name is known that
    # it could be for
    address: str,
    wanted: Iterable[bytes],  # names of the samples to keep
    most_bytes: int = MOST_BYTES,  # of the whole answer
    # those of answers longer than any engine's usually is (60 KB to 200 KB)
    turns: asyncio.Semaphore | None = None,
) -> Families:
    """The families that are asked for, of the engine at an address.

    Raises NoMetricsError: it answers with an error's status; MetricsAnswerError: with something else: a
    redirect, packed, or out of bounds, and the connection is closed then, not drained; aiohttp.ClientError:
    it does not answer, or not in HTTP; TimeoutError: its answer did not end in time.
    """
    reading = MetricsText(wanted, most_bytes)
    url = address if "://" in address else f"http://{address}"
    async with session.get(f"{url}/metrics", allow_redirects=False, ssl=False) as response:
        try:
            return await _read(response, reading, turns)
        except BaseException:
            response.close()
            raise


async def _read(
    response: aiohttp.ClientResponse, reading: MetricsText, turns: asyncio.Semaphore | None
) -> Families:
    if response.status != _OK:
        kind = NoMetricsError if response.status >= _ERROR else MetricsAnswerError
        raise kind(f"status {response.status}", f"/metrics answers {response.status}")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MetricsAnswerError("packed", "/metrics is packed although that was not asked for")
    size, turn = 0, LargeReadSlot(turns or asyncio.Semaphore(), LONG_BYTES)
    try:
        while part := await response.content.read(_PIECE_BYTES):
            size += len(part)
            await turn.grew_to(size)
            reading.feed(part)
            await asyncio.sleep(0)
        return reading.end()
    except MetricsTextError as error:
        raise MetricsAnswerError("too large", f"/metrics is not an engine's: {error}") from error
    finally:
        turn.give_back()
