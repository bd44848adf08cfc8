"""Descriptors: how many connections fit beside everything else that the picker has open."""

import os
import resource
from pathlib import Path
from typing import Final

from kvtier_scorer.picker.gateway.transport.limits import CONNECTIONS

_OPEN: Final = Path("/proc/self/fd")
_SHARE: Final = 2
"""Half is kept for health checks, and for what the picker asks of pods and of the API server."""


def raise_limit() -> int:
    """Raises the soft limit of open descriptors to the hard one, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connections_within(descriptors: int) -> int:
    """Connections of gateways that a process with so many descriptors takes."""
    if descriptors == resource.RLIM_INFINITY:
        return CONNECTIONS
    return max(1, min(CONNECTIONS, descriptors // _SHARE))


def open_descriptors() -> int:
    """How many are open now."""
    return len(os.listdir(_OPEN))  # noqa: PTH208 - a second's look, without an object for each
