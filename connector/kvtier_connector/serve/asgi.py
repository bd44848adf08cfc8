"""Calls an ASGI app from within its own process: no port, no TLS, no proxy in between."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[str, str]
"""Names in lower case."""

_MOST_ANSWER_BYTES: Final = 64 << 20  # the token ids of a prompt of a million tokens have 8 MiB


@dataclass(frozen=True, slots=True)
class Request:
    """What an app is asked."""

    method: str
    path: str
    value: object = None  # sent as JSON; None for no body
    headers: Headers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Headers = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether it is what was asked for."""
        return self.status == HTTPStatus.OK

    def json(self) -> Any:  # noqa: ANN401 - whatever it is
        """Return what the body says; None where it is no JSON."""
        try:
            return parse_json(self.body, most_bytes=_MOST_ANSWER_BYTES)
        except MalformedError:
            return None

    async def send(self, send: Send) -> None:
        """Answer a request with it."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        headers.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


Ask = Callable[[Request], Awaitable[Answer]]
"""Asks the engine's API."""


def json_answer(status: int, value: object) -> Answer:
    """Return an answer with a line of JSON."""
    return Answer(status, json.dumps(value).encode() + b"\n", {"content-type": "application/json"})


async def call(app: App, application: object, request: Request) -> Answer:
    """Ask an app as a client of its server would, with `application` for the whole of it.

    Raises whatever the app raises.
    """
    body = b"" if request.value is None else json.dumps(request.value).encode()
    sent = {"host": "localhost", "content-type": "application/json", **request.headers}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            *((name.encode(), text.encode()) for name, text in sent.items()),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": None,
        "server": None,
        "app": application,
        "state": {},
    }
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    is_over = asyncio.Event()
    status, said = 0, list[bytes]()
    answered: dict[str, str] = {}

    async def receive() -> Message:
        if requests:
            return requests.pop()
        await is_over.wait()  # a client that does not hang up
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            answered.update(
                (bytes(name).decode("latin-1").lower(), bytes(text).decode("latin-1"))
                for name, text in message.get("headers", ())
            )
        elif message["type"] == "http.response.body":
            said.append(message.get("body", b""))

    try:
        await app(scope, receive, send)
    finally:
        is_over.set()
    return Answer(status, b"".join(said), answered)
