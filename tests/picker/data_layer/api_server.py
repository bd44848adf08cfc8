"""A stand-in for the API server: what a list and a watch of it say, and every way in which they fail."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from kubernetes.aio.client import Configuration

from kvtier_common.kubernetes.client import Api

POOLS: Final = "/apis/inference.networking.k8s.io/v1/namespaces/ns/inferencepools"
PODS: Final = "/api/v1/namespaces/ns/pods"
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]
_END: Final = None


def pool(port: int = 8000, **labels: str) -> dict[str, Any]:
    """An InferencePool."""
    spec = {"selector": {"matchLabels": labels or {"app": "vllm"}}, "targetPorts": [{"number": port}]}
    return {"metadata": {"name": "pool", "resourceVersion": "1"}, "spec": spec}


def pod(name: str, ip: str, *, ready: bool = True) -> dict[str, Any]:
    """A pod."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "status": {"podIP": ip, "conditions": conditions, "containerStatuses": [{"containerID": "c"}]},
    }


class FakeApi:
    """Answers lists with `objects`, and watches with what is sent; a fault stands in for one answer.

    Attributes:
        host: Its base URL.
        objects: By path of the collection.
        lists: Faults of the lists to come, by path.
        watches: Faults of the watches to come, by path.
        asked: Every request: whether it is a watch, its path and its query.
    """

    def __init__(self) -> None:
        self.host = ""
        self.objects: dict[str, list[Any]] = {POOLS: [pool()], PODS: []}
        self.lists: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.watches: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.asked: list[tuple[bool, str, Mapping[str, str]]] = []
        self._queues: defaultdict[str, list[asyncio.Queue[bytes | None]]] = defaultdict(list)
        self._watched = asyncio.Condition()

    def client(self) -> Api:
        """A client of it."""
        configuration = Configuration()
        configuration.host = self.host
        return Api(configuration, "test")

    async def send(self, path: str, kind: str, document: object, *, last: bool = False) -> None:
        """Sends an event to the watch of a collection, once there is one."""
        await self.send_line(path, json.dumps({"type": kind, "object": document}).encode(), last=last)

    async def send_line(self, path: str, line: bytes, *, last: bool = False) -> None:
        """Sends a line as it is; after the `last` of a watch, what comes is for the next one."""
        (await self._watch_of(path)).put_nowait(line)
        if last:
            self._queues[path].clear()

    async def end(self, path: str) -> None:
        """Ends the watch of a collection, as the server does after some minutes."""
        (await self._watch_of(path)).put_nowait(_END)
        self._queues[path].clear()

    async def _watch_of(self, path: str) -> "asyncio.Queue[bytes | None]":
        async with asyncio.timeout(30), self._watched:
            await self._watched.wait_for(lambda: bool(self._queues[path]))
        return self._queues[path][-1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        is_watch = "watch" in request.query
        self.asked.append((is_watch, request.path, request.query))
        faults = (self.watches if is_watch else self.lists)[request.path]
        if faults:
            return await faults.popleft()(request)
        if is_watch:
            return await self._watch(request)
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": self.objects[request.path]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        async with self._watched:
            self._queues[request.path].append(queue)
            self._watched.notify_all()
        while (line := await queue.get()) is not _END:
            await response.write(line + b"\n")
        return response


@asynccontextmanager
async def running_api() -> AsyncIterator[FakeApi]:
    """A stand-in on loopback."""
    api = FakeApi()
    application = web.Application()
    application.router.add_route("GET", "/{path:.*}", api.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api.host = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        yield api
    finally:
        await runner.cleanup()


def status(code: int) -> Fault:
    """A refusal."""

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": code, "message": f"no: {code}"}, status=code)

    return refuse


def text(body: bytes) -> Fault:
    """An answer that is whole and wrong."""

    async def say(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    return say


async def cut_off(request: web.Request) -> web.StreamResponse:
    """Half an answer, and a connection that is reset."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"metadata"')
    assert request.transport is not None
    request.transport.abort()
    return response
