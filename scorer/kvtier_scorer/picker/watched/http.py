"""The picker's HTTP port: `/metrics`, and `/explain`, which says why a request would go where it would."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.ext_proc.requests import pick_request, tokenized
from kvtier_scorer.picker.protocol.error_body import error_body
from kvtier_scorer.picker.protocol.events import Question, RequestHead
from kvtier_scorer.picker.protocol.names import PRIORITY, SUBSET
from kvtier_scorer.picker.tokenization.tokenizer import Tokenizer
from kvtier_scorer.picker.watched.collector import Snapshot
from kvtier_scorer.scheduling.explanation import Explanation
from kvtier_scorer.scheduling.model import PickRequest

_EXPLAIN: Final = "/explain"
_HEADERS: Final = (PRIORITY,)


@dataclass(frozen=True, slots=True)
class Watched:
    """What the port shows.

    Attributes:
        snapshot: The numbers now.
        explain: Why a request would go where it would.
        tokenizer: Finds true tokens; None to estimate.
        max_body_bytes: Of a request to explain.
    """

    snapshot: Callable[[], Snapshot]
    explain: Callable[[PickRequest], Explanation]
    tokenizer: Tokenizer | None
    max_body_bytes: int

    async def start(self, host: str, port: int) -> web.AppRunner:
        """Listen; the runner's `cleanup` ends it.

        Raises:
            OSError: The address cannot be had.
        """
        app = web.Application(client_max_size=self.max_body_bytes)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get(_EXPLAIN, self._explain)
        app.router.add_post(_EXPLAIN + "/{path:.+}", self._explain)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host or None, port, reuse_address=True).start()
        except OSError:
            await runner.cleanup()
            raise
        return runner

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self.snapshot())
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            registry.register(collector)
        # with a thousand pods it is thousands of lines, and picks go on meanwhile
        text = await asyncio.to_thread(encode, registry)
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _explain(self, request: web.Request) -> web.Response:
        try:
            body = await request.read() if request.method == "POST" else None
            subset = request.headers.get(SUBSET)
            head = RequestHead(
                request.path.removeprefix(_EXPLAIN),
                {name: request.headers[name] for name in _HEADERS if name in request.headers},
                None if subset is None else frozenset(filter(None, map(str.strip, subset.split(",")))),
            )
            asked = pick_request(Question(head, body))
            if self.tokenizer is not None and body is not None:
                asked = await tokenized(asked, body, self.tokenizer)
        except RefusedRequestError as error:
            return web.Response(status=error.status, body=error_body(error), content_type="application/json")
        explanation = self.explain(asked).as_json()
        return web.Response(
            body=orjson.dumps(explanation, option=orjson.OPT_INDENT_2) + b"\n",
            content_type="application/json",
        )
