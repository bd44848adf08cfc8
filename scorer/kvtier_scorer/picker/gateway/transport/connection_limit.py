"""Tells when no more gateways can connect, which grpcio does without a word."""

import asyncio
import logging
from typing import Final

from kvtier_scorer.picker.gateway.transport.descriptors import open_descriptors

_LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 1.0
_TOLD_EVERY: Final = 60
"""Looks between two tellings, while it lasts."""


async def warn_when_full(connections: int) -> None:
    """Log, until it is cancelled, that so many connections are open that further ones are refused.

    grpcio tells no number of connections; the descriptors since the start are that and a few of our own.
    """
    before = open_descriptors()
    quiet = 0
    while True:
        await asyncio.sleep(_LOOK_S)
        quiet -= 1
        if quiet <= 0 and open_descriptors() - before >= connections:
            quiet = _TOLD_EVERY
            _LOG.warning(
                "%d connections are open, as many as are taken: further ones are refused; "
                "raise the limit of open files, or find out who opens them",
                connections,
            )
