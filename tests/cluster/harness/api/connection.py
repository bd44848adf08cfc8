"""Plain requests to the API server, many at a time: neither our client nor anybody else's model objects."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import orjson
from kubernetes.client import Configuration

from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER

AT_A_TIME: Final = 16
"""Requests in flight; more did not create more objects a second on two cores."""

_AGAIN: Final = 429
_AGAIN_S: Final = 1.0
"""What an API server asks for with it (Retry-After)."""
_TRIES: Final = 20


class WatchEndedError(Exception):
    """A watch is over: what happens from then on is not told."""


class Connection:
    """An administrator's connections to one API server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request, its answer parsed; asked again when the server says so, as for a kind made just now.

        Raises:
            aiohttp.ClientResponseError: The server refused it.
        """
        for _ in range(_TRIES):
            try:
                return await self._request(method, path, body)
            except aiohttp.ClientResponseError as error:
                if error.status != _AGAIN:
                    raise
                await asyncio.sleep(_AGAIN_S)
        return await self._request(method, path, body)

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        content = None if body is None else orjson.dumps(body)
        headers = {
            "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"
        }
        async with self._session.request(method, self._url + path, data=content, headers=headers) as answer:
            text = await answer.read()
            if not answer.ok:
                raise aiohttp.ClientResponseError(
                    answer.request_info, (), status=answer.status, message=text.decode(errors="replace")
                )
            parsed: dict[str, Any] = orjson.loads(text)
            return parsed

    async def create_all(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Creates objects in their order, AT_A_TIME at a time."""
        waiting = iter(objects)

        async def work() -> None:
            for document in waiting:
                await self.request(
                    "POST", collection(document["kind"], document["metadata"]["namespace"]), document
                )

        async with asyncio.TaskGroup() as workers:
            for _ in range(AT_A_TIME):
                workers.create_task(work())

    async def events(
        self, path: str, started: Callable[[], Awaitable[object]] | None = None
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """What is there, then what happens, as (type, object).

        Args:
            path: Path of a collection.
            started: Awaited when the watch is under way.

        Raises:
            aiohttp.ClientResponseError: The server refused to list or to watch.
            WatchEndedError: The server ended the watch or went away.
        """
        listed = await self.request("GET", path)
        for item in listed["items"]:
            yield "ADDED", item
        version = listed["metadata"]["resourceVersion"]
        url = f"{self._url}{path}?watch=1&resourceVersion={version}"
        endless = aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, timeout=endless, raise_for_status=True) as answer:
            if started is not None:
                await started()
            rest = b""
            try:
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield _event(path, line)
            except aiohttp.ClientPayloadError as error:
                raise WatchEndedError(f"the watch of {path} ended: {error}") from error
        raise WatchEndedError(f"the watch of {path} ended: the API server closed it")


def _event(path: str, line: bytes) -> tuple[str, dict[str, Any]]:
    """What a line of a watch says, as (type, object).

    Raises:
        WatchEndedError: It says why the server ends the watch.
    """
    event = orjson.loads(line)
    content: dict[str, Any] = event["object"]
    if event["type"] == "ERROR":
        reason = f"{content.get('message')} ({content.get('code')})"
        raise WatchEndedError(f"the watch of {path} ended: {reason}")
    return event["type"], content


@asynccontextmanager
async def connect(configuration: Configuration) -> AsyncIterator[Connection]:
    """A connection with a client's rights."""
    connector = aiohttp.TCPConnector(ssl=tls(configuration), limit=0)
    headers = (
        {"Authorization": token} if (token := configuration.get_api_key_with_prefix("BearerToken")) else {}
    )
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Connection(session, configuration.host)


def tls(configuration: Configuration) -> ssl.SSLContext:
    """The server's authority and the client's certificate."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def collection(kind: str, namespace: str | None = None) -> str:
    """Path of all objects of a kind, in one namespace or everywhere."""
    return (KVCACHETIER if kind == KVCACHETIER.kind else BY_NAME[kind]).path(namespace)
