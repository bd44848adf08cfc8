"""How many connections fit, and what is said when no more do."""

import asyncio
import logging
import os
import resource
from contextlib import ExitStack, suppress

import pytest
from tests.picker.transport.conftest import until

from kvtier_scorer.picker.gateway.transport.connections import (
    connections_within,
    open_descriptors,
    warn_when_full,
)
from kvtier_scorer.picker.gateway.transport.server import CONNECTIONS

_FEW = 5
_OTHERS = 20


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(1, 1), (1024, 512), (1 << 20, CONNECTIONS), (resource.RLIM_INFINITY, CONNECTIONS)],
)
def test_half_of_the_descriptors_are_kept_for_others(descriptors: int, connections: int) -> None:
    assert connections_within(descriptors) == connections


def test_what_is_open_is_counted() -> None:
    with ExitStack() as stack:
        for _ in range(1000):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        assert 1000 <= open_descriptors() < 2000


async def test_it_is_told_now_and_then_that_connections_are_used_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # not this process's own: what earlier tests left may be closed meanwhile
    looks, connections = 0, 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return _OTHERS + connections

    caplog.set_level(logging.WARNING)
    task = asyncio.create_task(warn_when_full(_FEW, look, check_interval_s=0.001))
    await until(lambda: looks > _FEW)
    assert not caplog.records
    connections = _FEW
    await until(lambda: len(caplog.records) > 1)
    assert caplog.messages[0].startswith(f"{_FEW} connections are open")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
