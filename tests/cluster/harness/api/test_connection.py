"""What a connection tells of a collection, over real sockets, until the watch ends in one way or another."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.cluster.harness.api.connection import Connection, WatchEndedError

pytestmark = pytest.mark.timeout(60)

_PATH: Final = "/api/v1/namespaces/ns/configmaps"
_VERSION: Final = "7"


class _Server:
    """Lists one object; the watch after that says what a test sends.

    Attributes:
        refused: Whether lists (False) and watches (True) are.
    """

    def __init__(self) -> None:
        self.refused: set[bool] = set()
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_cut = False

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(_PATH, self._answer)
        return app

    def send(self, part: bytes) -> None:
        """Sends a chunk of the watch."""
        self._parts.put_nowait(part)

    def end(self) -> None:
        """Ends the watch, its answer whole."""
        self._parts.put_nowait(None)

    def cut(self) -> None:
        """Closes the watch's connection, the rest of its answer outstanding."""
        self._is_cut = True
        self._parts.put_nowait(None)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        is_watch = "watch" in request.query
        if is_watch in self.refused:
            return web.json_response({"kind": "Status", "message": "forbidden"}, status=403)
        if is_watch:
            assert request.query["resourceVersion"] == _VERSION
            return await self._watch(request)
        return web.json_response({"metadata": {"resourceVersion": _VERSION}, "items": [_object("listed")]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while (part := await self._parts.get()) is not None:
            await response.write(part)
        if self._is_cut:
            assert request.transport is not None
            request.transport.abort()
        return response


def _object(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _line(kind: str, content: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode() + b"\n"


@pytest.fixture
def server() -> _Server:
    return _Server()


@pytest.fixture
async def connection(server: _Server) -> AsyncIterator[Connection]:
    async with TestServer(server.app()) as running, aiohttp.ClientSession() as session:
        yield Connection(session, str(running.make_url("")).rstrip("/"))


async def test_what_is_there_is_told_and_then_what_happens(server: _Server, connection: Connection) -> None:
    events = connection.events(_PATH)
    assert await anext(events) == ("ADDED", _object("listed"))
    deleted = _line("DELETED", _object("listed"))
    server.send(_line("ADDED", _object("new")) + _line("MODIFIED", _object("new")) + deleted[:9])
    assert await anext(events) == ("ADDED", _object("new"))
    assert await anext(events) == ("MODIFIED", _object("new"))
    # the first half has been read by now: the two do not arrive as one
    server.send(deleted[9:])
    assert await anext(events) == ("DELETED", _object("listed"))


async def test_the_end_of_the_answer_ends_the_watch(server: _Server, connection: Connection) -> None:
    events = connection.events(_PATH)
    await anext(events)
    server.end()
    with pytest.raises(WatchEndedError, match=f"{_PATH} ended: the API server closed it"):
        await anext(events)


async def test_an_error_event_ends_the_watch(server: _Server, connection: Connection) -> None:
    events = connection.events(_PATH)
    await anext(events)
    server.send(_line("ERROR", {"kind": "Status", "message": "too old resource version", "code": 410}))
    with pytest.raises(WatchEndedError, match=rf"{_PATH} ended: too old resource version \(410\)"):
        await anext(events)


async def test_a_cut_connection_ends_the_watch(server: _Server, connection: Connection) -> None:
    events = connection.events(_PATH)
    await anext(events)
    # the server dies in the middle of an event
    server.send(_line("MODIFIED", _object("listed")) + b'{"type"')
    await anext(events)
    server.cut()
    with pytest.raises(WatchEndedError, match=f"{_PATH} ended: ") as raised:
        await anext(events)
    assert isinstance(raised.value.__cause__, aiohttp.ClientPayloadError)


@pytest.mark.parametrize(("is_watch", "told"), [(False, 0), (True, 1)])
async def test_a_refused_request_is_no_ended_watch(
    server: _Server, connection: Connection, *, is_watch: bool, told: int
) -> None:
    server.refused.add(is_watch)
    events = connection.events(_PATH)
    for _ in range(told):
        await anext(events)
    with pytest.raises(aiohttp.ClientResponseError) as raised:
        await anext(events)
    assert raised.value.status == 403


async def test_what_started_raises_is_no_ended_watch(connection: Connection) -> None:
    async def started() -> None:
        raise aiohttp.ServerDisconnectedError

    events = connection.events(_PATH, started)
    await anext(events)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await anext(events)
