"""One scrape over a pod's one kept connection."""

import asyncio
from typing import Final

import aiohttp

from kvtier_common.metrics.answer import MetricsAnswerError, metrics_session, read_metrics
from kvtier_scorer.picker.engines.metrics_scrape.engine_metrics import (
    WANTED,
    EngineMetrics,
    NotMetricsError,
    engine_metrics,
)

_KEPT_S: Final = 60.0
_MOST_CHARACTERS: Final = 80


class ScrapeError(Exception):
    """A scrape brought nothing to read; the message says what happened, in one line.

    Attributes:
        kind: What sort of trouble it is, the same for as long as only its details change.
        is_answer: Whether it is what the pod said that is wrong; asking again at once costs time for nothing.
    """

    def __init__(self, kind: str, message: str, *, is_answer: bool = False) -> None:
        self.kind = kind
        self.is_answer = is_answer
        super().__init__(message)


class NotListeningError(ScrapeError):
    """Nothing listens at the address: the process that would serve requests there, too, is gone."""


def scrape_session(timeout_s: float) -> aiohttp.ClientSession:
    """A session with one connection a pod; the pods' number is not bounded."""
    return metrics_session(timeout_s, "kvtier-picker", kept_s=_KEPT_S)


async def fetch(
    session: aiohttp.ClientSession, address: str, turns: asyncio.Semaphore | None = None
) -> EngineMetrics:
    """Scrapes one pod.

    Args:
        session: As `scrape_session` makes it.
        address: `ip:port`.
        turns: Those of long answers, of all pods that are scraped at a time.

    Raises:
        NotListeningError: The connection was refused.
        ScrapeError: It does not answer, not in time, or with something that is not an engine's metrics.
    """
    try:
        return engine_metrics(await read_metrics(session, address, WANTED, turns=turns))
    except MetricsAnswerError as error:
        raise ScrapeError(error.kind, str(error), is_answer=True) from error
    except NotMetricsError as error:
        raise ScrapeError("not metrics", f"/metrics is not an engine's: {error}", is_answer=True) from error
    except TimeoutError as error:
        raise ScrapeError("silent", "/metrics does not answer in time") from error
    except aiohttp.ClientConnectorError as error:
        reason = f"cannot connect: {error.strerror or error}"
        if isinstance(error.os_error, ConnectionRefusedError):
            raise NotListeningError("refused", reason) from error
        raise ScrapeError("unreachable", reason) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        text = str(error)[:_MOST_CHARACTERS] or type(error).__name__
        raise ScrapeError("unreadable", f"/metrics cannot be read: {text!a}", is_answer=True) from error
