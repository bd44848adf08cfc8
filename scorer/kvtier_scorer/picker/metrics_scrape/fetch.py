"""One scrape over a pod's one kept connection."""

from typing import Final

import aiohttp

from kvtier_scorer.picker.metrics_scrape.engine_metrics import EngineMetrics, NotMetricsError, engine_metrics

LARGEST_BYTES: Final = 8 << 20
"""An engine's text has 60 KB to 200 KB; what is larger than this is something else."""
_KEPT_S: Final = 60.0
_OK: Final = 200
# uncompressed: compressing 60 KB takes the engine's server more time than sending them
_HEADERS: Final = {
    "Accept": "text/plain;version=0.0.4",
    "Accept-Encoding": "identity",
    "User-Agent": "kvtier-picker",
}


class ScrapeError(Exception):
    """A scrape brought nothing to read; the message says what happened, in one line.

    Attributes:
        kind: What sort of trouble it is, the same for as long as only its details change.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class NobodyThereError(ScrapeError):
    """Nothing listens at the address: the process that would serve requests there, too, is gone."""


def scrape_session(timeout_s: float) -> aiohttp.ClientSession:
    """A session with one connection a pod; the pods' number is not bounded."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=1, keepalive_timeout=_KEPT_S),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers=_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=1 << 18,
    )


async def fetch(session: aiohttp.ClientSession, address: str) -> EngineMetrics:
    """Scrapes one pod.

    Raises:
        NobodyThereError: The connection was refused.
        ScrapeError: It does not answer, not in time, or with something that is not an engine's metrics.
    """
    try:
        async with session.get(f"http://{address}/metrics", allow_redirects=False) as response:
            if response.status != _OK:
                raise ScrapeError(f"status {response.status}", f"/metrics answers {response.status}")
            text = await _body(response)
        return engine_metrics(text)
    except NotMetricsError as error:
        raise ScrapeError("not metrics", f"/metrics is not an engine's: {error}") from error
    except TimeoutError as error:
        raise ScrapeError("silent", "/metrics does not answer in time") from error
    except aiohttp.ClientConnectorError as error:
        reason = f"cannot connect: {error.strerror or error}"
        if isinstance(error.os_error, ConnectionRefusedError):
            raise NobodyThereError("refused", reason) from error
        raise ScrapeError("unreachable", reason) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ScrapeError(
            "unreadable", f"/metrics cannot be read: {str(error) or type(error).__name__}"
        ) from error


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """The body; its connection is closed, not drained, where there is too much of it."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > LARGEST_BYTES:
            response.close()
            raise ScrapeError("too large", f"/metrics is larger than {LARGEST_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)
