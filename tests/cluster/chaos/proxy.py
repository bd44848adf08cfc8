"""The real API server behind a proxy that adds what the real one will not do when a test asks for it."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml
from aiohttp import web
from kubernetes.client import Configuration
from tests.cluster.harness.api.connection import tls
from tests.cluster.harness.operator.operator import Operator, start_operator

_READS: Final = {"GET", "HEAD", "OPTIONS"}
_OF_ONE_CONNECTION: Final = {"host", "connection", "transfer-encoding", "content-length", "content-encoding"}
_LARGEST_BODY_BYTES: Final = 1 << 24
_REASONS: Final = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way.

    Attributes:
        method: HTTP method.
        path: Path without the query.
        is_watch: Whether it asks for a stream of events.
        write: The writes up to this one; 0 for a read.
    """

    method: str
    path: str
    is_watch: bool
    write: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with a call.

    Attributes:
        status: Answered at once with this error, without the server; 0: the server acts.
        after: Called when the server has acted and its answer is not yet on its way back.
        reset: The connection breaks instead of that answer.
        silent: A watch that is open and says nothing, whatever happens.
        held: That answer waits until this is set; not of watches.
    """

    status: int = 0
    after: Callable[[], None] | None = None
    reset: bool = False
    silent: bool = False
    held: asyncio.Event | None = None


NONE: Final = Fault()


class Proxy:
    """Forwards to one API server with a client's rights.

    Attributes:
        choose: Picks the fault of each call.
        calls: Every call so far.
        next_write: Set when the next write arrives; from then on it is that of the write after it.
        next_answer: Likewise, when the next answer to a write is on its way back.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.choose: Callable[[Call], Fault] = lambda _: NONE
        self.calls: list[Call] = []
        self.next_write = asyncio.Event()
        self.next_answer = asyncio.Event()
        self.url = ""
        self._upstream = configuration.host
        self._token = configuration.get_api_key_with_prefix("BearerToken")
        self._writes = 0
        self._watches: dict[asyncio.Transport, asyncio.AbstractEventLoop] = {}

    @property
    def writes(self) -> int:
        """Writes so far."""
        return self._writes

    def end_watches(self) -> None:
        """Breaks every watch that is under way; may be called from another thread."""
        for watch, loop in [*self._watches.items()]:
            loop.call_soon_threadsafe(watch.abort)

    def kubeconfig(self, folder: Path) -> Path:
        """Writes a kubeconfig that leads here."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
            "current-context": "proxy",
        }
        path = folder / "proxy.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def _call(self, request: web.Request) -> Call:
        is_write = request.method not in _READS
        if is_write:
            self._writes += 1
            self.next_write.set()
            self.next_write = asyncio.Event()
        call = Call(
            request.method, request.path, request.query.get("watch") in {"1", "true"}, self._writes * is_write
        )
        self.calls.append(call)
        return call

    @contextlib.contextmanager
    def _under_way(self, watch: asyncio.Transport | None) -> Iterator[None]:
        if watch is None:  # the client is gone
            yield
            return
        self._watches[watch] = asyncio.get_running_loop()
        try:
            yield
        finally:
            del self._watches[watch]

    async def handle(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        """Answers one request, or not."""
        call = self._call(request)
        fault = self.choose(call)
        if fault.status:
            return web.json_response(_status(fault.status, call), status=fault.status)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
        if self._token:
            headers["Authorization"] = self._token
        url = self._upstream + request.path_qs
        async with session.request(
            request.method, url, headers=headers, data=await request.read() or None, allow_redirects=False
        ) as answer:
            if call.is_watch:
                with self._under_way(request.transport):
                    return await _stream(request, answer, silent=fault.silent)
            body = await answer.read()
            if fault.after is not None:
                fault.after()
            if fault.held is not None:
                await fault.held.wait()
            if call.write:
                self.next_answer.set()
                self.next_answer = asyncio.Event()
            if fault.reset and request.transport is not None:
                request.transport.abort()
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
            if encoding := answer.headers.get("Content-Encoding"):
                kept["Content-Encoding"] = encoding
            return web.Response(status=answer.status, body=body, headers=kept)


async def _stream(
    request: web.Request, answer: aiohttp.ClientResponse, *, silent: bool
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
    await response.prepare(request)
    with contextlib.suppress(ConnectionResetError):  # the client is gone, killed or stopped
        async for chunk in answer.content.iter_any():
            if not silent:
                await response.write(chunk)
    return response


def _status(code: int, call: Call) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": _REASONS[code],
        "message": f"injected into {call.method} {call.path}",
    }


@asynccontextmanager
async def running_proxy(configuration: Configuration) -> AsyncIterator[Proxy]:
    """A proxy on a free port of the loopback."""
    proxy = Proxy(configuration)
    connector = aiohttp.TCPConnector(ssl=tls(configuration), limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        app = web.Application(client_max_size=_LARGEST_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", functools.partial(proxy.handle, session))
        # Otherwise a stream would live on until the server says something that nobody hears.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()


@asynccontextmanager
async def operator_through(proxy: Proxy, folder: Path, namespace: str) -> AsyncIterator[Operator]:
    """An operator that serves one namespace and knows no other way to the API server."""
    log = folder / f"{namespace}.log"
    operator = await asyncio.to_thread(start_operator, proxy.kubeconfig(folder), log, namespaces=(namespace,))
    try:
        yield operator
    finally:
        await asyncio.to_thread(operator.stop)
