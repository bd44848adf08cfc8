"""Listens for gRPC clients, and lets them go in order."""

import asyncio
import contextlib
import ssl
from typing import Final

from kvtier_scorer.picker.rpc.call import Methods
from kvtier_scorer.picker.rpc.connection import RpcConnection

_LOOK_S: Final = 0.02
_BACKLOG: Final = 1024


class RpcServer:
    """One listening port.

    Args:
        methods: What clients may call.
        host: Address to listen at; empty for every one, of both protocols.
        port: 0 for any that is free.
        tls: Certificate and key; None to serve in the clear.
    """

    def __init__(self, methods: Methods, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._methods = methods
        self._host = host
        self._wanted_port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[RpcConnection] = set()

    @property
    def port(self) -> int:
        """The port it listens at, once it does."""
        assert self._server is not None  # noqa: S101 - a fault of ours
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def calls(self) -> int:
        """Calls that are open."""
        return sum(connection.calls for connection in self._connections)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be had.
        """
        self._server = await asyncio.get_running_loop().create_server(
            self._connected, self._host or None, self._wanted_port, ssl=self._tls, backlog=_BACKLOG
        )

    async def drain(self, grace_s: float) -> None:
        """Take no more clients, ask those there are to go, and close when their calls have ended.

        Args:
            grace_s: How long calls may go on; what is still open then is cut off.
        """
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.announce_drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                # a client may still open calls on its way out: there is no one moment to wait for
                while self.calls:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        for connection in tuple(self._connections):
            connection.drain()
        await asyncio.sleep(0)
        for connection in tuple(self._connections):
            connection.close()

    def _connected(self) -> RpcConnection:
        connection = RpcConnection(self._methods, self._connections.discard)
        self._connections.add(connection)
        return connection
