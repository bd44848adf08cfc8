"""An API server's app with as much of vLLM's API as the middleware asks for, and what it was asked."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kvtier_connector.serve.asgi import Answer, Message, Receive, Request, Scope, Send, call, json_answer
from kvtier_connector.serve.middleware import KVTierMiddleware

SOON_S = 60.0


class FakeEngine:
    """One token a word; a prompt's tokens are cached once it was computed."""

    def __init__(self, api_key: str = "", **arguments: object) -> None:
        self.asked = list[tuple[str, dict[str, Any], Mapping[str, str]]]()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.fails: Callable[[dict[str, Any]], bool] = lambda _body: False
        self.is_healthy = True
        self.looks = 0  # at its health
        self.tells_cached = True
        self.max_model_len = 4096
        self._api_key = api_key
        self._computed = set[str]()
        keys = [api_key] if api_key else None
        self.state = SimpleNamespace(args=SimpleNamespace(api_key=keys, port=8000, **arguments))

    def lose_all(self) -> None:
        """Have nothing cached any more, as after a flood."""
        self._computed.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {bytes(name).decode(): bytes(text).decode() for name, text in scope["headers"]}
        await (await self._answer(scope["path"], body, headers)).send(send)

    async def _answer(  # noqa: PLR0911 - one for each path
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        if path == "/health":
            self.looks += 1
            return Answer(200 if self.is_healthy else 503, b"")
        if (
            path.startswith("/v1")
            and self._api_key
            and headers.get("authorization") != f"Bearer {self._api_key}"
        ):
            return json_answer(401, {"error": "Unauthorized"})
        if path == "/v1/models":
            models = [
                {"id": name, "parent": parent, "max_model_len": self.max_model_len}
                for name, parent in (("m", None), ("adapter", "m"))
            ]
            return json_answer(200, {"data": models})
        request = json.loads(body)
        if path == "/tokenize":
            if request.get("model") not in {None, "m", "adapter"}:
                return json_answer(404, {"error": {"message": "no such model"}})
            return json_answer(200, {"tokens": tokens_of(request)})
        self.asked.append((path, request, headers))
        await self.goes_on.wait()
        if self.fails(request):
            return json_answer(400, {"error": {"message": "too\nlong"}})
        tokens = len(tokens_of(request))
        key = json.dumps([tokens_of(request), headers.get("x-data-parallel-rank")])
        usage: dict[str, Any] = {"prompt_tokens": tokens}
        if self.tells_cached:
            usage["prompt_tokens_details"] = {"cached_tokens": tokens if key in self._computed else 0}
        self._computed.add(key)
        return json_answer(200, {"usage": usage, "choices": [{"text": "computed"}]})


def tokens_of(request: Mapping[str, Any]) -> list[int]:
    """Numbers of the words of a prompt, or of a chat's messages one after another."""
    prompt = request.get("prompt")
    if isinstance(prompt, list):
        return prompt
    text = prompt or " ".join(message["content"] for message in request["messages"])
    return [sum(word.encode()) for word in text.split()]


async def ask(
    middleware: KVTierMiddleware, path: str, value: object = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Ask a server as its clients do."""
    request = Request("GET" if value is None else "POST", path, value, headers or {})
    return await asyncio.wait_for(call(middleware, middleware._app, request), SOON_S)


async def healthy(middleware: KVTierMiddleware) -> None:
    """Wait until the server is healthy."""

    async def is_healthy() -> bool:
        return (await ask(middleware, "/health")).is_ok

    while not await is_healthy():  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Let others go on until it holds."""
    while not condition():  # noqa: ASYNC110 - anything may be asked for
        await asyncio.sleep(0)


async def served_in_pieces(
    middleware: KVTierMiddleware,
    messages: list[Message],
    headers: Sequence[tuple[bytes, bytes]] = (),
    path: str = "/v1/completions",
) -> tuple[bytes, list[Message]]:
    """Send a request in pieces; returns the answer's body, and what of the messages was not received."""
    said = list[bytes]()

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        said.append(message.get("body", b""))

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": headers,
        "app": middleware._app,
    }
    await middleware(scope, receive, send)
    return b"".join(said), messages
