"""The operator's client, in front of a model of an API server: a test decides when what arrives."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson
from tests.unit.operator.reconcile.model_cluster.server import Server, event_line

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.client import MOST_BYTES, Request
from kvtier_operator.reconcile.api_server import KINDS, NODE, POD

_JSON: Final = "application/json"
_PROMPT: Final = {each.path(): each for each in (POD, NODE, *(kind for kind in KINDS if kind.optional))}
"""What the tests do not play with is answered at once."""


@dataclass(slots=True)
class Call:
    """A request under way; `outcome` is there when the server has acted."""

    request: Request
    answer: asyncio.Future[bytes]
    outcome: bytes | KvtierError | None = None

    def arrive(self, server: Server) -> None:
        """The server acts."""
        try:
            self.outcome = server.handle(self.request)
        except KvtierError as error:
            self.outcome = error

    def end(self, outcome: bytes | KvtierError | None) -> None:
        """An answer, or what comes instead of it; nobody hears it where the operator is gone."""
        if self.answer.done():
            return
        if isinstance(outcome, bytes):
            self.answer.set_result(outcome)
        else:
            self.answer.set_exception(outcome or UnreachableError("no answer"))


@dataclass(slots=True)
class Stream:
    """A watch under way: it has said what happened up to `version`."""

    kind: str
    selector: str
    version: int
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)

    def say(self, server: Server, most: int) -> int:
        """Says the next few things; returns how many."""
        said = 0
        for change in server.since(self.version):
            if said == most:
                break
            self.version = change.version
            if change.ref.kind == self.kind and (line := event_line(change, self.selector)):
                self.lines.put_nowait(line)
                said += 1
        return said

    def expire(self) -> None:
        """The server has forgotten what happened since."""
        status = {"code": 410, "message": "too old", "metadata": {}}
        self.lines.put_nowait(orjson.dumps({"type": "ERROR", "object": status}))

    def end(self) -> None:
        """The connection breaks."""
        self.lines.put_nowait(None)


class ModelApi:
    """As client.Api.

    Attributes:
        calls: Requests that were sent and not yet answered.
        streams: Watches under way.
        writes: Every write that was sent.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.calls: list[Call] = []
        self.streams: list[Stream] = []
        self.writes: list[Request] = []

    async def request(self, request: Request) -> bytes:
        """As client.Api.request."""
        if request.method != "GET":
            self.writes.append(request)
        if request.path in _PROMPT:
            return self._server.handle(request)
        call = Call(request, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        return await call.answer

    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        accept: str = _JSON,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> bytes:
        """As client.Api.get; nothing here is large."""
        del most_bytes
        return await self.request(Request("GET", path, query or {}, accept=accept))

    async def watch(
        self, path: str, query: Mapping[str, str], *, most_bytes: int = MOST_BYTES
    ) -> AsyncGenerator[bytes, None]:
        """As client.Api.watch; nothing here is large."""
        del most_bytes
        kind = next(kind.kind for kind in (POD, NODE, *KINDS) if kind.path() == path)
        stream = Stream(kind, query.get("labelSelector", ""), int(query["resourceVersion"]))
        self.streams.append(stream)
        try:
            while (line := await stream.lines.get()) is not None:
                yield line
        finally:
            self.streams.remove(stream)
        raise UnreachableError(f"the watch of {path} broke")
