"""/explain, which reads a body as a request's."""

import asyncio
from typing import Final

import aiohttp
from tests.picker.attacks.attackers.bodies import small_parts_of
from tests.picker.attacks.attackers.tally import ANSWERED, Tally
from tests.picker.attacks.attackers.target import Target

_MIB: Final = 1 << 20
_CONNECTIONS: Final = 20
_AGAIN_S: Final = 0.1


async def explaining(target: Target, tally: Tally) -> None:
    """20 at a time ask about a chat of 7.5 MiB."""
    body = small_parts_of(15 * _MIB // 2)
    url = f"http://127.0.0.1:{target.explain_port}/explain/v1/chat/completions"

    async def member(session: aiohttp.ClientSession) -> None:
        while True:
            try:
                async with session.post(url, data=body) as response:
                    await response.read()
                    tally[ANSWERED if response.ok else str(response.status)] += 1
            except aiohttp.ClientConnectorError:
                tally["refused"] += 1
            except aiohttp.ClientError:
                tally["closed"] += 1
            await asyncio.sleep(_AGAIN_S)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(member(session))
