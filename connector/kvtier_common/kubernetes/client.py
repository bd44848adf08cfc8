"""Requests to the API server: the official client's connections and credentials, errors of our own.

Bodies go in as plain values and come out as bytes: the caller knows what it needs of them, and a watch of ten
thousand objects cannot afford a model object for each.
"""

import asyncio
from asyncio import Semaphore
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import getproxies

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.stream import WsApiClient
from typing_extensions import Self

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.http.answer import CutLine, read_body, read_lines
from kvtier_common.kubernetes import answers
from kvtier_common.kubernetes.answers import Document

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_JSON: Final = "application/json"
MOST_BYTES: Final = 16 << 20
"""The longest answer, or line of a watch: an object has 1.5 MiB (etcd, --max-request-bytes), and a character
of it up to six bytes in JSON."""
_LONG_AT_A_TIME: Final = 2  # long answers and lines that are read at a time
_FIRST_ERROR: Final = 300
_UNKNOWN_TO_IT: Final = 401
_AT_A_TIME: Final = 16
"""Requests in flight: beside an API server on two cores more do no more, and each connection takes memory."""
_HEARTBEAT_S: Final = 30.0
"""Between signs of life of a connection in both directions."""
_SILENCE_S: Final = 100.0
"""A watch without a line for as long is dead. The server sends a bookmark every 60 to 75 seconds
(k8s.io/apiserver, pkg/storage/cacher: bookmarkFrequency and its jitter)."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, sock_connect=10)
_ERRORS: Final[Mapping[int, type[KvtierError]]] = {
    400: answers.InvalidObjectError,
    401: answers.ForbiddenError,
    403: answers.ForbiddenError,
    404: answers.NotFoundError,
    405: answers.InvalidObjectError,
    409: answers.ConflictError,
    410: answers.ExpiredError,
    413: answers.InvalidObjectError,
    415: answers.InvalidObjectError,
    422: answers.InvalidObjectError,
}
_NO_ANSWER: Final = (aiohttp.ClientError, OSError, ConfigException)
"""Also where the token could not be read again, from a file that is not there or for want of descriptors."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = _JSON
    accept: str = _JSON
    most_bytes: int = MOST_BYTES

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Api:
    """One API server; `close` it in the end, or use it as a context.

    `before_write` is called when a request that is no GET has its connection and is about to be sent; what it
    raises is raised in place of that. With it, a write whose caller is cancelled goes on to its end: the
    server may carry it out anyway, and `writes_ended` is to know.
    """

    def __init__(
        self,
        configuration: Configuration,
        user_agent: str,
        before_write: Callable[[], None] | None = None,
    ) -> None:
        # without proxies in the environment there is nothing to look up there, in a thread, for every request
        configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
        configuration.trace_configs = [_trace_of_writes(before_write)] if before_write else []
        configuration.connection_pool_maxsize = 0  # a watch holds its connection
        self._watching = ApiClient(configuration)
        configuration.connection_pool_maxsize = _AT_A_TIME
        self._asking = ApiClient(configuration)
        self._host = configuration.host
        self._user_agent = user_agent
        self._turns = Semaphore(_LONG_AT_A_TIME)
        self._guarded = before_write is not None
        self._writes: set[asyncio.Task[bytes]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections."""
        await self._watching.close()
        await self._asking.close()

    async def request(self, request: Request) -> bytes:
        """One request and the answer's body. Raises KvtierError of `answers`, by what the server said."""
        if not self._guarded or request.method == "GET":
            return await self._request(request)
        write = asyncio.create_task(self._request(request))
        self._writes.add(write)
        write.add_done_callback(self._end_write)
        await asyncio.wait([write])
        return write.result()

    async def writes_ended(self, limit_s: float) -> bool:
        """Waits for the writes under way; returns whether all of them ended in time."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=limit_s)
        return not self._writes

    def _end_write(self, write: asyncio.Task[bytes]) -> None:
        self._writes.discard(write)
        if not write.cancelled():
            write.exception()  # looked at, also where its caller is gone

    async def _request(self, request: Request) -> bytes:
        try:
            response = await self._send(self._asking, request, _TIMEOUT)
            content = await self._body(response, request)
        except _NO_ANSWER as error:
            raise UnreachableError(f"no answer to {request}: {_reason(error)}") from error
        if response.status >= _FIRST_ERROR:
            raise _error(response, content, str(request))
        return content

    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        accept: str = _JSON,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> bytes:
        """Reads; raises as `request`."""
        return await self.request(Request("GET", path, query or {}, accept=accept, most_bytes=most_bytes))

    async def watch(
        self, path: str, query: Mapping[str, str], *, most_bytes: int = MOST_BYTES
    ) -> AsyncGenerator[bytes | CutLine, None]:
        """The lines of a watch until the server ends it.

        Raises KvtierError: as `request`; UnreachableError also for a watch that went silent.
        """
        request = Request("GET", path, query, most_bytes=most_bytes)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_SILENCE_S)
        try:
            response = await self._send(self._watching, request, timeout)
            try:
                if response.status >= _FIRST_ERROR:
                    raise _error(response, await self._body(response, request), f"watch {path}")
                async with aclosing(read_lines(response.content, most_bytes, self._turns)) as lines:
                    async for line in lines:
                        yield line
            finally:
                _cut_off(response)
        except _NO_ANSWER as error:
            raise UnreachableError(f"the watch of {path} broke: {_reason(error)}") from error

    @asynccontextmanager
    async def socket(
        self, path: str, query: Sequence[tuple[str, str]], protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A connection in both directions that speaks a subprotocol, to the end of the block.

        Raises KvtierError: as `request`, where the server does not open it.
        """
        client = WsApiClient(self._watching.configuration, heartbeat=_HEARTBEAT_S)
        headers = {"User-Agent": self._user_agent, "sec-websocket-protocol": protocol}
        try:
            await client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            opening = await client.request(
                "GET", self._host + path, query_params=query, headers=headers, _preload_content=False
            )
            socket = await opening
        except aiohttp.WSServerHandshakeError as error:
            await client.close()
            raise api_error(error.status, {}, f"GET {path}: {error.status}") from error
        except _NO_ANSWER as error:
            await client.close()
            raise UnreachableError(f"no answer to GET {path}: {_reason(error)}") from error
        try:
            yield socket
        finally:
            await socket.close()
            await client.close()

    async def _body(self, response: aiohttp.ClientResponse, request: Request) -> bytes:
        try:
            return await read_body(response.content, str(request), request.most_bytes, self._turns)
        except BaseException:
            _cut_off(response)
            raise

    async def _send(
        self, client: ApiClient, request: Request, limit: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {
            "Accept": request.accept,
            "Accept-Encoding": "identity",  # a bound on bytes is one on what they become
            "Content-Type": request.content_type,
            "User-Agent": self._user_agent,
        }
        await client.update_params_for_auth(
            headers, [], ["BearerToken"], request.path, request.method, request.body
        )
        url = self._host + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        answer = await client.rest_client.request(
            request.method, url, headers=headers, body=request.body, _request_timeout=limit
        )
        response: aiohttp.ClientResponse = answer.response
        return response


def _trace_of_writes(before_write: Callable[[], None]) -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def start(_: object, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        context.writes = request.method != "GET"

    async def check(_: object, context: SimpleNamespace, __: object) -> None:
        if context.writes:
            before_write()

    trace.on_request_start.append(start)
    trace.on_connection_create_end.append(check)
    trace.on_connection_reuseconn.append(check)
    return trace


def _cut_off(response: aiohttp.ClientResponse) -> None:
    """Ends an answer that is not read to its end: TLS that closes reads on for up to 30 s."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _error(response: aiohttp.ClientResponse, content: bytes, request: str) -> KvtierError:
    """The error for an answer of 300 and more (k8s.io/apimachinery, metav1.Status)."""
    summary = f"{request}: {response.status} {response.reason}"
    return api_error(response.status, _status(content), summary, response.headers.get("Retry-After"))


def api_error(
    code: object, status: Mapping[str, Any], message: str, retry_after: str | None = None
) -> KvtierError:
    """The error for what an API server says."""
    message = answers.without_values(str(status.get("message") or message))
    if code == _UNKNOWN_TO_IT:
        message = f"{message}: the API server does not take these credentials; renew them"
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes
    ):
        return answers.NamespaceTerminatingError(message)
    if isinstance(code, int) and code in _ERRORS:
        return _ERRORS[code](message)
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return answers.ServerError(message, seconds)


def _status(content: bytes) -> Document:
    try:
        return answers.parse_document(content)
    except UnreachableError:
        return {}


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
