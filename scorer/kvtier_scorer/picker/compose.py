"""Puts the picker together and runs it: pods and their load in, picks out."""

import asyncio
import gc
import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.config.settings import PickerSettings, TokenizationMode
from kvtier_scorer.index.prefix_index import PrefixIndex, load_kernels
from kvtier_scorer.picker.data_layer import data_layer
from kvtier_scorer.picker.engines.tokenizers import EngineTokenizer, FileTokenizer
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.service import ExtProcService, RequestReader, Tokenizer
from kvtier_scorer.picker.gateway.hint_gate import HintGate
from kvtier_scorer.picker.gateway.ports import drain, health_server, stop_event
from kvtier_scorer.picker.gateway.transport.certificates import Certificates
from kvtier_scorer.picker.gateway.transport.connections import connections_within, raise_limit, warn_when_full
from kvtier_scorer.picker.gateway.transport.health import Health
from kvtier_scorer.picker.gateway.transport.server import (
    AROUND_BYTES,
    BODIES_WINDOW_BYTES,
    CALLS,
    GrpcServer,
    Limits,
)
from kvtier_scorer.picker.http_server import HttpServer
from kvtier_scorer.picker.observability.collector import MetricsSnapshot, metrics_snapshot
from kvtier_scorer.picker.observability.counters import PickerCounters
from kvtier_scorer.picker.observability.logs import LogRateLimiter
from kvtier_scorer.picker.options import Options, PodsOption, Pool
from kvtier_scorer.picker.pods.source import PodSource, StaticPods
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler
from kvtier_scorer.scheduling.scoring import stale_pods

if TYPE_CHECKING:
    from kvtier_scorer.picker.observability.traces import PickTraces

_LOG: Final = logging.getLogger(__name__)
_LOG_INTERVAL_S: Final = 10.0
_RENEWED_EVERY_S: Final = 10.0
_LOOK_S: Final = 0.02


async def serve(options: Options) -> None:
    """Run until SIGTERM or SIGINT, then let requests under way finish.

    Raises PickerConfigError: it cannot run as asked; the message says what to change.
    """
    stop = stop_event()
    settings = options.settings
    certificates = Certificates(options.certificates) if options.tls else None
    source = await _source(options.pods)
    load_kernels()
    # a collection in the middle of a large body would look at all of this each time, for 70 ms
    gc.collect()
    gc.freeze()

    index, counters, health = PrefixIndex(), PickerCounters(), Health()
    table = PodTable(index, settings.retained)
    scheduler = Scheduler(settings, table, index, np.random.default_rng())
    tokenizer = _tokenizer(settings, table)
    requests = RequestReader(tokenizer, HintGate(settings.hints, settings.share_from))
    limits = settings.limits
    budget = BodyBudget(limits.total_body_bytes, limits.max_body_bytes, monotonic)
    uploads = BodyBudget(limits.most_upload_bytes, limits.max_body_bytes, monotonic)
    service = ExtProcService(
        scheduler=scheduler,
        requests=requests,
        clock=monotonic,
        counters=counters,
        budget=budget,
        uploads=uploads,
        rate_limited_log=LogRateLimiter(_LOG, _LOG_INTERVAL_S, monotonic),
        tells_endpoint=options.tells_endpoint,
    )
    connections = connections_within(raise_limit())
    picking = GrpcServer(
        {**service.methods(), **health.methods()},
        Limits(limits.max_body_bytes + AROUND_BYTES, connections, CALLS, BODIES_WINDOW_BYTES),
        options.host,
        options.ext_proc_port,
        certificates.credentials if certificates else None,
    )
    probed = health_server(health, options.host, options.health_port)
    async with AsyncExitStack() as stack:
        stack.callback(requests.close)
        service.traces = stack.enter_context(_traces(wanted=options.tracing))
        if tokenizer is not None:
            stack.push_async_callback(tokenizer.close)
        layer = await stack.enter_async_context(
            data_layer(source, table, settings, clock=monotonic, on_hits=counters.count_hits)
        )

        def now() -> MetricsSnapshot:
            failures = Counter(layer.scraper.failures.values())
            stale = stale_pods(settings, table, monotonic())
            skipped_pods = tokenizer.skipped_pods if tokenizer is not None else 0
            return metrics_snapshot(counters, table, stale, failures, service.calls, skipped_pods)

        http_server = HttpServer(
            now,
            lambda request: scheduler.explain(request, monotonic()),
            requests,
            budget,
            limits.max_body_bytes,
        )
        stack.push_async_callback(probed.drain, 0.0)
        with _flag(f"--grpc-health-port {options.health_port}"):
            await probed.start()
        with _flag(f"--metrics-port {options.http_port}"):
            runner = await http_server.start_metrics(options.host, options.http_port)
            stack.push_async_callback(runner.cleanup)
        with _flag(f"--grpc-port {options.ext_proc_port}"):
            await picking.start()
        if access := options.explain:
            with _flag(f"--explain-address {access.host}:{access.port}", "give another"):
                runner = await http_server.start_explain(access)
                stack.push_async_callback(runner.cleanup)
        chores = {
            "readiness": _tell_when_ready(source, health),
            "deadlines": service.enforce_deadlines(),
            "connections": warn_when_full(connections),
            **({"certificates": _renew(certificates)} if certificates else {}),
        }
        background = [asyncio.create_task(chore, name=name) for name, chore in chores.items()]
        _LOG.info(
            "listening: ext_proc %d%s, health %d, metrics %d",
            options.ext_proc_port, " with TLS" if options.tls else "", options.health_port, options.http_port,
        )  # fmt: skip
        await stop.wait()

        _LOG.info("stopping; %d calls are open", service.calls)
        await drain(service, health, picking, background, options.grace_s)
    _LOG.info("stopped")


async def _source(pods: PodsOption) -> PodSource:
    if isinstance(pods, tuple):
        return StaticPods(pods)
    # the cluster's client takes most of a second to import
    from kvtier_common.kubernetes.client import Api  # noqa: PLC0415
    from kvtier_common.kubernetes.connect import NoClusterError, connection  # noqa: PLC0415
    from kvtier_scorer.picker.pods.cluster import InferencePoolPods, SelectedPods  # noqa: PLC0415

    try:
        api = Api(await connection(), "kvtier-picker")
    except NoClusterError as error:
        raise PickerConfigError(f"{error}, or give a static list of pods") from error
    if isinstance(pods, Pool):
        return InferencePoolPods(api, pods.namespace, pods.name)
    return SelectedPods(api, pods.namespace, pods.labels, pods.ports)


@contextmanager
def _traces(*, wanted: bool) -> Iterator["PickTraces | None"]:
    if not wanted:
        yield None
        return
    try:
        from kvtier_scorer.picker.observability.traces import PickTraces  # noqa: PLC0415 - with the option alone
    except ImportError as error:
        raise PickerConfigError(
            f"--tracing: {error.name} is missing; install kvtier[scorer], or leave the option out"
        ) from error
    traces = PickTraces()
    try:
        yield traces
    finally:
        traces.end()


def _tokenizer(settings: PickerSettings, table: PodTable) -> Tokenizer | None:
    tokenization = settings.tokenization
    if tokenization.mode is TokenizationMode.TOKENIZE:

        def some_pod() -> str | None:
            pods = list(table)
            return random.choice(pods).address if pods else None  # noqa: S311 - not a secret

        return EngineTokenizer(some_pod, tokenization.timeout_ms / 1000)
    if tokenization.mode is TokenizationMode.TOKENIZER:
        return FileTokenizer(Path(tokenization.path or ""))
    return None


@contextmanager
def _flag(flag: str, advice: str = "give another port") -> Iterator[None]:
    """A flag that says where to listen, for the error where that cannot be."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise PickerConfigError(f"{flag}: cannot listen there: {reason}; {advice}") from error


async def _tell_when_ready(source: PodSource, health: Health) -> None:
    """Ready once all pods that there are are known: before that, a pick would pass by most of them."""
    while not source.synced:  # noqa: ASYNC110 - a source tells what it knows, not when
        await asyncio.sleep(_LOOK_S)
    health.set_ready(ready=True)
    _LOG.info("ready")


async def _renew(certificates: Certificates) -> None:
    while True:
        await asyncio.sleep(_RENEWED_EVERY_S)
        try:
            if certificates.renew():
                _LOG.info("the certificate has been renewed")
        except PickerConfigError as error:
            _LOG.error("the certificate stays as it was: %s", error)
