"""One URL for several engines: a reverse proxy that takes turns and streams what it gets."""

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import cycle
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, web
from multidict import CIMultiDict

# Headers of one connection, which a proxy must not pass on (RFC 9110, 7.6.1), and those aiohttp sets itself.
_NOT_FORWARDED: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer"}  # codespell:ignore te
    | {"transfer-encoding", "upgrade"}
    | {"host", "content-length"}
)
_MAX_BODY_BYTES: Final = 64 * 1024**2
_CONNECT_TIMEOUT_S: Final = 10.0
_SESSION: Final = web.AppKey("session", ClientSession)


async def serve_proxy(upstreams: Sequence[str], host: str, port: int) -> web.AppRunner:
    """Listen on `host`:`port` and hand each request to the next of `upstreams` (base URLs).

    Returns:
        The running server; its `cleanup()` ends it.

    Raises:
        OSError: The port cannot be had.
    """
    turns = cycle(upstreams)

    async def forward(request: web.Request) -> web.StreamResponse:
        return await _forward(request, next(turns))

    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    app.cleanup_ctx.append(_with_session)
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner


async def _with_session(app: web.Application) -> AsyncIterator[None]:
    timeout = ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S)
    async with ClientSession(timeout=timeout, auto_decompress=False, cookie_jar=DummyCookieJar()) as session:
        app[_SESSION] = session
        yield


async def _forward(request: web.Request, upstream: str) -> web.StreamResponse:
    response = web.StreamResponse()
    try:
        async with request.app[_SESSION].request(
            request.method,
            upstream + request.path_qs,
            headers=_end_to_end(request.headers),
            data=await request.read(),
            allow_redirects=False,
        ) as answer:
            response.set_status(answer.status, answer.reason)
            response.headers.update(_end_to_end(answer.headers))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
    except ClientError as error:
        if not response.prepared:
            raise web.HTTPBadGateway(text=f"the engine at {upstream} does not answer: {error}") from error
        if request.transport:  # either end went away; an answer cut short must not look complete
            request.transport.abort()
    return response


def _end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _NOT_FORWARDED)
