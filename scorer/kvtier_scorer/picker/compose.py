"""Puts the picker together and runs it: pods and their load in, picks out."""

import asyncio
import logging
import os
import random
import signal
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Final

import numpy as np
from aiohttp import web

from kvtier_scorer.config.errors import PickerConfigError
from kvtier_scorer.config.settings import PickerSettings, parse_settings
from kvtier_scorer.config.settings_sections import TokenizationMode
from kvtier_scorer.index.prefix_index import PrefixIndex, warm
from kvtier_scorer.picker.data_layer import data_layer
from kvtier_scorer.picker.ext_proc.service import ExtProc
from kvtier_scorer.picker.options import Options, Pool
from kvtier_scorer.picker.pods.source import PodSource
from kvtier_scorer.picker.pods.static import StaticPods
from kvtier_scorer.picker.rpc.certificates import Certificates
from kvtier_scorer.picker.rpc.health import Health
from kvtier_scorer.picker.rpc.server import RpcServer
from kvtier_scorer.picker.tokenization.tokenizer import Tokenizer
from kvtier_scorer.picker.watched.collector import Snapshot, snapshot
from kvtier_scorer.picker.watched.http import Watched
from kvtier_scorer.picker.watched.occasionally import Occasionally
from kvtier_scorer.picker.watched.tallies import Tallies
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler
from kvtier_scorer.scheduling.weighing import stale_pods

_LOG: Final = logging.getLogger(__name__)
_TOLD_EVERY_S: Final = 10.0
_RENEWED_EVERY_S: Final = 10.0
_LOOK_S: Final = 0.02


async def serve(options: Options) -> None:
    """Run until SIGTERM or SIGINT, then let requests under way finish.

    Raises:
        PickerConfigError: It cannot run as asked; the message says what to change.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = parse_settings(options.config_text)
    certificates = Certificates(options.certificates) if options.tls else None
    source = await _source(options.pods)
    warm()

    index, tallies, health = PrefixIndex(), Tallies(), Health()
    table = PodTable(index)
    scheduler = Scheduler(settings, table, index, np.random.default_rng())
    tokenizer = _tokenizer(settings, table)
    service = ExtProc(
        scheduler,
        tallies,
        settings.limits.max_body_bytes,
        tokenizer,
        monotonic,
        Occasionally(_TOLD_EVERY_S, monotonic),
    )
    picking = RpcServer(
        {**service.methods(), **health.methods()},
        options.host,
        options.ext_proc_port,
        certificates.context if certificates else None,
    )
    probed = RpcServer(health.methods(), options.host, options.health_port)
    async with AsyncExitStack() as stack:
        if tokenizer is not None:
            stack.push_async_callback(tokenizer.close)
        members = await stack.enter_async_context(
            data_layer(source, table, settings, clock=monotonic, confirmed=tallies.hits)
        )

        def now() -> Snapshot:
            troubles = Counter(members.scraper.troubles.values())
            return snapshot(tallies, table, stale_pods(settings, table, monotonic()), troubles, picking.calls)

        watched = Watched(
            now,
            lambda request: scheduler.explain(request, monotonic()),
            tokenizer,
            settings.limits.max_body_bytes,
        )
        runner = await _listen(options, picking, probed, watched)
        stack.push_async_callback(runner.cleanup)
        background = [asyncio.create_task(_tell_when_ready(source, health), name="readiness")]
        if certificates is not None:
            background.append(asyncio.create_task(_renew(certificates), name="certificates"))
        _LOG.info(
            "listening: ext_proc %d%s, health %d, metrics %d",
            options.ext_proc_port, " with TLS" if options.tls else "", options.health_port, options.http_port,
        )  # fmt: skip
        await stop.wait()

        _LOG.info("stopping; %d calls are open", picking.calls)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        health.set_ready(ready=False)
        service.drain()
        await picking.drain(options.grace_s)
        await probed.drain(0.0)
    _LOG.info("stopped")


async def _source(pods: tuple[str, ...] | Pool) -> PodSource:
    if not isinstance(pods, Pool):
        return StaticPods(pods)
    # the cluster's client takes most of a second to import
    from kvtier_scorer.picker.pods.api_server import ApiServer, connection  # noqa: PLC0415
    from kvtier_scorer.picker.pods.inference_pool import InferencePoolPods  # noqa: PLC0415

    return InferencePoolPods(ApiServer(await connection()), pods.namespace, pods.name)


def _tokenizer(settings: PickerSettings, table: PodTable) -> Tokenizer | None:
    tokenization = settings.tokenization
    if tokenization.mode is TokenizationMode.TOKENIZE:
        from kvtier_scorer.picker.tokenization.ask_engine import AskEngine  # noqa: PLC0415

        def some_pod() -> str | None:
            pods = list(table)
            return random.choice(pods).address if pods else None  # noqa: S311 - not a secret

        return AskEngine(some_pod, tokenization.timeout_ms / 1000)
    if tokenization.mode is TokenizationMode.TOKENIZER:
        from kvtier_scorer.picker.tokenization.tokenizer_file import TokenizerFile  # noqa: PLC0415

        return TokenizerFile(Path(tokenization.path or ""))
    return None


async def _listen(options: Options, picking: RpcServer, probed: RpcServer, watched: Watched) -> web.AppRunner:
    flag = ""
    try:
        flag = f"--grpc-health-port {options.health_port}"
        await probed.start()
        flag = f"--metrics-port {options.http_port}"
        runner = await watched.start(options.host, options.http_port)
        flag = f"--grpc-port {options.ext_proc_port}"
        await picking.start()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise PickerConfigError(f"{flag}: cannot listen there: {reason}; give another port") from error
    return runner


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
