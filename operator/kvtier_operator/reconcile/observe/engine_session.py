"""How observers ask engines for their metrics: in the background, a few at a time."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from kvtier_common.metrics.answer import metrics_session, read_metrics
from kvtier_common.metrics.text import Families

if TYPE_CHECKING:
    import aiohttp

_AT_A_TIME: Final = 8


class EngineSession:
    """One observer's questions; `turns` bounds how many of them are under way."""

    def __init__(self, request_s: float) -> None:
        self.turns = asyncio.Semaphore(_AT_A_TIME)
        self._request_s = request_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Lets engines be asked until the end of the block, which ends what is still asked."""
        async with metrics_session(self._request_s, "kvtier-operator") as self._session:
            try:
                yield
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, asking: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Asks in the background."""
        task = asyncio.create_task(asking, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def read(self, address: str, wanted: Iterable[bytes]) -> Families:
        """What `read_metrics` has of an engine, and raises."""
        if self._session is None:
            raise RuntimeError("engines are asked before open()")
        return await read_metrics(self._session, address, wanted)
