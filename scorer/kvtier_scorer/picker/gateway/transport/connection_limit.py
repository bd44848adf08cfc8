"""Logs when no more gateways can connect, which grpcio does not tell."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kvtier_scorer.picker.gateway.transport.descriptors import open_descriptors

_LOG: Final = logging.getLogger(__name__)
_CHECK_INTERVAL_S: Final = 1.0
_LOGGED_EVERY: Final = 60
"""Looks between two tellings, while it lasts."""


async def warn_when_full(
    connections: int,
    count_descriptors: Callable[[], int] = open_descriptors,
    check_interval_s: float = _CHECK_INTERVAL_S,
) -> None:
    """Log, until it is cancelled, that so many connections are open that further ones are refused.

    grpcio tells no number of connections; the descriptors since the start are that and a few of our own.

    Args:
        connections: The most that are taken.
        count_descriptors: How many descriptors are open now.
        check_interval_s: Between two looks.
    """
    before = count_descriptors()
    quiet = 0
    while True:
        await asyncio.sleep(check_interval_s)
        quiet -= 1
        if quiet <= 0 and count_descriptors() - before >= connections:
            quiet = _LOGGED_EVERY
            _LOG.warning(
                "%d connections are open, as many as are taken: further ones are refused; "
                "raise the limit of open files, or find out who opens them",
                connections,
            )
