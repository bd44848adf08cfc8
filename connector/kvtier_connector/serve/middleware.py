"""Wraps vLLM's API server: `--middleware kvtier_connector.serve.middleware.KVTierMiddleware`.

While the resource's prefixes are computed, GET /health answers 503. A request with the hint `prefetch` has
its blocks fetched, and nothing computed. All else passes as it is.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

from kvtier_connector.payload import CONTROL_VARIABLE, PREFIXES_VARIABLE, PREFIXES_WITHIN_VARIABLE
from kvtier_connector.serve.asgi import Answer, App, Headers, Message, Receive, Request, Scope, Send, call
from kvtier_connector.serve.keeper import PrefixKeeper
from kvtier_connector.serve.prefetch import MOST_BODY_BYTES, PATHS, PrefetchAnswers
from kvtier_connector.serve.prefixes import read_prefixes
from kvtier_connector.serve.turns import Turn, turn_of_server

DEFAULT_WITHIN_S: Final = 120.0
_HEALTH: Final = "/health"
_MOST_DIGITS: Final = 20  # of a body's length

log: Final = logging.getLogger("vllm.kvtier")


class KVTierMiddleware:
    """Wraps one API server's app."""

    def __init__(self, app: App, environment: Mapping[str, str] = os.environ) -> None:
        self._app = app
        self._environment = environment
        self._control_path = environment.get(CONTROL_VARIABLE, "")
        self._prefetches = PrefetchAnswers(self._control_path)
        self._keeper: PrefixKeeper | None = None
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Begin when the app has started, and end with it."""

        async def send_and_begin(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._begin(scope.get("app"))
            await send(message)

        try:
            await self._app(scope, receive, send_and_begin)
        finally:
            if self._task is not None:
                self._task.cancel()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._begin(scope.get("app"))
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path == _HEALTH and self._keeper is not None and not self._keeper.is_open:
            await self._keeper.held().send(send)
        elif path in PATHS and scope["method"] == "POST" and _length_bytes(scope) <= MOST_BODY_BYTES:
            await self._complete(path, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _complete(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        body, again = await _read_ahead(receive)
        ask = partial(call, self._app, scope.get("app"))
        answer = await self._prefetches.answer(body, path, _headers(scope), ask)
        if answer is not None:
            await answer.send(send)
            return
        await self._app(scope, again, send)

    def _begin(self, application: object) -> None:
        """Begin with the prefixes, once."""
        if self._keeper is not None:
            return
        folder = self._environment.get(PREFIXES_VARIABLE, "")
        prefixes, problems = read_prefixes(Path(folder)) if folder else ([], [])
        for problem in problems:
            log.warning("kvtier: a prefix is passed over: %s", problem)
        arguments = getattr(getattr(application, "state", None), "args", None)
        keys = getattr(arguments, "api_key", None) or [self._environment.get("VLLM_API_KEY", "")]
        own = {"authorization": f"Bearer {keys[0]}"} if keys[0] else {}

        async def ask(request: Request) -> Answer:
            headers = {**own, **request.headers}
            return await call(self._app, application, replace(request, headers=headers))

        port = getattr(arguments, "port", None) or 0
        turn = turn_of_server(port, self._control_path) if prefixes else Turn(None)
        self._keeper = PrefixKeeper(
            prefixes,
            ask,
            within_s=_within_s(self._environment.get(PREFIXES_WITHIN_VARIABLE, "")),
            ranks=_ranks(arguments),
            turn=turn,
        )
        if prefixes:
            self._task = asyncio.get_running_loop().create_task(self._keeper.run())


async def _read_ahead(receive: Receive) -> tuple[bytes, Receive]:
    """Return a request's body, of a long one nothing, and what gives it to the app all the same.

    The app joins what it receives in the same way, so that it is not done twice.
    """
    parts, size_bytes = list[bytes](), 0
    messages = list[Message]()
    more = True
    while more and size_bytes <= MOST_BODY_BYTES:
        message = await receive()
        if message["type"] != "http.request":  # the client has hung up
            messages.append(message)
            break
        parts.append(message.get("body", b""))
        size_bytes += len(parts[-1])
        more = message.get("more_body", False)
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    messages.insert(0, {"type": "http.request", "body": body, "more_body": more})

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return b"" if more else body, again


def _headers(scope: Scope) -> Headers:
    return {
        bytes(name).decode("latin-1").lower(): bytes(text).decode("latin-1")
        for name, text in scope["headers"]
    }


def _length_bytes(scope: Scope) -> int:
    """Return how long a request says that its body is; 0 where it does not."""
    text = _headers(scope).get("content-length", "")
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0


def _within_s(text: str) -> float:
    """Return how long the engine may be called unhealthy for its prefixes."""
    if not text:
        return DEFAULT_WITHIN_S
    try:
        within_s = float(text)
    except ValueError:
        within_s = -1.0
    if not 0 <= within_s < inf:
        log.warning(
            "kvtier: %s: got %r, must be seconds, 0 or more; taken as %g",
            PREFIXES_WITHIN_VARIABLE,
            text,
            DEFAULT_WITHIN_S,
        )
        return DEFAULT_WITHIN_S
    return within_s


def _ranks(arguments: Any) -> int:  # noqa: ANN401 - vLLM's, which has no types
    """Return how many data-parallel engines this server shares requests out to, of which one may be named."""
    others_share_out = any(
        getattr(arguments, f"data_parallel_{name}", None)
        for name in ("external_lb", "hybrid_lb", "multi_port_external_lb")
    )
    if others_share_out or getattr(arguments, "data_parallel_rank", None) is not None:
        return 1
    size = getattr(arguments, "data_parallel_size", None)
    return size if isinstance(size, int) and size > 1 else 1
