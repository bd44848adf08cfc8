"""An aiohttp site for pages that are answered at once: few connections, none of them for long."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from aiohttp import web

CONNECTIONS: Final = 64  # at once; a cluster has a handful of Prometheus servers
LASTS_S: Final = 60.0
"""A connection, whatever it does: longer than any page takes, and than Prometheus may wait for one."""
HEAD_BYTES: Final = 16 * 1024  # of a request line, and of one header field
HEADERS: Final = 64


def limited_runner(app: web.Application) -> web.AppRunner:
    """What a `LimitedSite` is made with: it reads no longer heads than it has to."""
    return web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=1.0,
        max_line_size=HEAD_BYTES,
        max_field_size=HEAD_BYTES,
        max_headers=HEADERS,
        auto_decompress=False,
    )


class LimitedSite(web.BaseSite):
    """Listens at one address; a connection too many is closed at once, any other when its time is over.

    aiohttp itself waits without end for a first request, for the rest of one, and for an answer to be read.
    """

    __slots__ = ("_connections", "_host", "_lasts_s", "_open", "_port")

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        *,
        connections: int = CONNECTIONS,
        lasts_s: float = LASTS_S,
    ) -> None:
        super().__init__(runner)
        self._host, self._port = host, port
        self._connections, self._lasts_s = connections, lasts_s
        self._open: set[asyncio.BaseTransport] = set()

    @property
    def name(self) -> str:
        """Where it is, for aiohttp."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listen. Raises OSError: the address cannot be had."""
        await super().start()
        answering = self._runner.server
        assert answering is not None  # noqa: S101 - the base class refuses a runner that is not set up
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _LimitedConnection(answering(), self._admit, self._open.discard),
            self._host or None,
            self._port,
            backlog=self._backlog,
            reuse_address=True,
        )

    def _admit(self, transport: asyncio.Transport) -> asyncio.TimerHandle | None:
        if len(self._open) >= self._connections:
            return None
        self._open.add(transport)
        return asyncio.get_running_loop().call_later(self._lasts_s, transport.abort)


class _LimitedConnection(asyncio.Protocol):
    """Passes a connection on to aiohttp, while it may last."""

    def __init__(
        self,
        inner: asyncio.Protocol,
        taken: Callable[[asyncio.Transport], asyncio.TimerHandle | None],
        lost: Callable[[asyncio.BaseTransport], None],
    ) -> None:
        self._inner, self._admit, self._lost = inner, taken, lost
        self._transport: asyncio.Transport | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # of TCP
        self._end = self._admit(stream)
        if self._end is None:
            stream.abort()
            return
        self._transport = stream
        self._inner.connection_made(stream)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is None or self._transport is None:
            return
        self._end.cancel()
        self._lost(self._transport)
        self._inner.connection_lost(exc)
