"""1,500 connections that say nothing, or no more than hello."""

import asyncio
import resource
from typing import Final

from tests.picker.attacks.attackers.tally import OPEN, Tally
from tests.picker.attacks.attackers.target import Target

_CONNECTIONS: Final = 1_500
_AT_A_TIME: Final = 100
_CONNECT_S: Final = 2.0
_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


async def silent(target: Target, tally: Tally) -> None:
    """Every other one says HTTP/2's hello; those that are closed do not come again."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1 << 16), hard))
    turns = asyncio.Semaphore(_AT_A_TIME)

    async def member(number: int) -> None:
        try:
            async with turns, asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(*target.address)
        except (OSError, TimeoutError):
            tally["refused"] += 1
            return
        tally[OPEN] += 1
        if number % 2:
            writer.write(_HELLO)
        try:
            while await reader.read(1 << 12):
                pass
        except OSError:
            pass
        tally[OPEN] -= 1
        tally["closed"] += 1
        writer.transport.abort()

    async with asyncio.TaskGroup() as group:
        for number in range(_CONNECTIONS):
            group.create_task(member(number))
