"""The picker's HTTP ports: `/metrics` for all; for few `/explain`, why a request would go where it would."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kvtier_common.http.site import LimitedSite, limited_runner
from kvtier_scorer.config.contract import PRIORITY, SUBSET
from kvtier_scorer.errors import RefusedRequestError, UnknownApiError
from kvtier_scorer.picker.gateway.bodies import APIS, api_of
from kvtier_scorer.picker.gateway.body_memory import BodyBudget, BodyShare
from kvtier_scorer.picker.gateway.ext_proc.service import RequestReader
from kvtier_scorer.picker.gateway.protocol.events import RequestHead, RequestReceived
from kvtier_scorer.picker.gateway.protocol.messages import error_body
from kvtier_scorer.picker.observability.collector import MetricsSnapshot
from kvtier_scorer.picker.options import ExplainAccess
from kvtier_scorer.scheduling.explanation import Explanation
from kvtier_scorer.scheduling.model import PickRequest

_EXPLAIN: Final = "/explain"
_HEADERS: Final = (PRIORITY,)
_AT_A_TIME: Final = 2  # bodies to explain: the loop that takes them in is the picks', too
_NO_BODY: Final = 1  # the least that aiohttp takes for a limit


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Serves `/metrics`, and `/explain` on a port of its own; its bodies share the gateways' memory."""

    metrics_snapshot: Callable[[], MetricsSnapshot]
    explain: Callable[[PickRequest], Explanation]
    requests: RequestReader
    budget: BodyBudget
    max_body_bytes: int
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME))

    async def start_metrics(self, host: str, port: int) -> web.AppRunner:
        """Listen for `/metrics`; the runner's `cleanup` ends it. OSError if the address is taken."""
        app = web.Application(client_max_size=_NO_BODY)
        app.router.add_get("/metrics", self._metrics)
        return await _listening(app, host, port)

    async def start_explain(self, access: ExplainAccess) -> web.AppRunner:
        """Listen for `/explain`; the runner's `cleanup` ends it. OSError if the address is taken."""
        app = web.Application(client_max_size=self.max_body_bytes, middlewares=[_guard(access)])
        app.router.add_get(_EXPLAIN, self._explain)
        app.router.add_post(_EXPLAIN + "/{path:.+}", self._explain)
        return await _listening(app, access.host, access.port)

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self.metrics_snapshot())
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            registry.register(collector)
        # with a thousand pods it is thousands of lines, and picks go on meanwhile
        text = await asyncio.to_thread(encode, registry)
        return web.Response(body=text, headers={"Content-Type": content_type})

    async def _explain(self, request: web.Request) -> web.Response:
        share = self.budget.share()
        share.pinned = True
        try:
            async with self._turns:
                asked = (await self.requests.read(await self._question(request, share))).request
        except RefusedRequestError as error:
            return web.Response(status=error.status, body=error_body(error), content_type="application/json")
        finally:
            share.release()
        explanation = self.explain(asked).as_json()
        return web.Response(
            body=orjson.dumps(explanation, option=orjson.OPT_INDENT_2) + b"\n",
            content_type="application/json",
        )

    async def _question(self, request: web.Request, share: BodyShare) -> RequestReceived:
        body = None
        path = request.path.removeprefix(_EXPLAIN)
        if request.method == "POST":
            if api_of(path) is None:
                raise UnknownApiError(
                    f"{path}: no prompt is read there, so there is nothing to explain; ask under "
                    f"{_EXPLAIN} for one of {', '.join(APIS)}, or with GET for the pods alone"
                )
            # nobody waits for an explanation as for an answer: the most that it may be is held from the start
            share.take(self.max_body_bytes if request.content_length is None else request.content_length)
            body = await request.read()
        subset = request.headers.get(SUBSET)
        head = RequestHead(
            path,
            {name: request.headers[name] for name in _HEADERS if name in request.headers},
            None if subset is None else frozenset(filter(None, map(str.strip, subset.split(",")))),
        )
        return RequestReceived(head, body)


def _guard(access: ExplainAccess) -> Middleware:
    """Lets nobody else through, before a body is read."""

    @web.middleware
    async def let_through(request: web.Request, handler: Handler) -> web.StreamResponse:
        if access.allows(request.headers.get("Host", ""), request.headers.get("Authorization", "")):
            return await handler(request)
        if access.token is None:
            return web.Response(status=HTTPStatus.FORBIDDEN, text="ask by address, or as localhost\n")
        shown = {"WWW-Authenticate": "Bearer"}
        return web.Response(status=HTTPStatus.UNAUTHORIZED, headers=shown, text="a bearer token is needed\n")

    return let_through


async def _listening(app: web.Application, host: str, port: int) -> web.AppRunner:
    runner = limited_runner(app)
    await runner.setup()
    try:
        await LimitedSite(runner, host, port).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner
