"""The only module that knows Kopf: it watches the KVCacheTiers and hands every event on.

Kopf writes nothing here: event handlers need neither its finalizer nor its annotations (ADR 0007). It runs in
a thread of its own, because when it stops, it cancels every task of its event loop, whoever made it
(kopf/_core/reactor/running.py, run_tasks).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import kopf
from kubernetes.aio.client import Configuration

from kvtier_operator.reconcile.api_server import KVCACHETIER
from kvtier_operator.reconcile.observability import WATCH_RESTARTS
from kvtier_operator.reconcile.settings import RETRY

_LOG: Final = logging.getLogger(__name__)
_FIRST_BACKOFFS_S: Final = (1, 2, 5, 10)
_LONGEST_BACKOFF_S: Final = 20
_STOP_S: Final = 1.0
"""Kopf has nothing to finish."""
OnEvent = Callable[[str | None, Mapping[str, Any]], None]


@dataclass(slots=True)
class ResourceWatch:
    """Watches the KVCacheTiers until cancelled."""

    configuration: Configuration  # address of the API server, and credentials
    namespaces: tuple[str, ...]  # namespaces to watch; none for the whole cluster
    on_event: OnEvent  # called in the event loop of `run` with type (None for a listed object) and object
    _stop: Callable[[], object] = field(default=lambda: None)

    async def run(self) -> None:
        """Keeps Kopf running in its thread."""
        thread = threading.Thread(
            target=lambda loop: asyncio.run(self._keep_running(loop)),
            args=(asyncio.get_running_loop(),),
            name="kopf",
            daemon=True,
        )
        thread.start()
        try:
            await asyncio.Event().wait()
        finally:
            self._stop()
            await asyncio.to_thread(thread.join, _STOP_S)

    async def _keep_running(self, ours: asyncio.AbstractEventLoop) -> None:
        """In Kopf's thread: starts it again when it gives up."""
        stopped, failures = asyncio.Event(), 0
        here = asyncio.get_running_loop()
        self._stop = lambda: here.call_soon_threadsafe(stopped.set)
        while not stopped.is_set():
            try:
                await kopf.operator(
                    registry=self._registry(ours),
                    settings=kopf_settings(),
                    # Otherwise kopf looks up the user's name, and a container's user has none.
                    identity="kvtier",  # type: ignore[arg-type]  # its NewType of str is private
                    standalone=True,
                    clusterwide=not self.namespaces,
                    namespaces=self.namespaces,
                    stop_flag=stopped,
                )
            except Exception as error:  # noqa: BLE001 - kopf raises whatever its client did not expect
                failures += 1
                delay_s = RETRY.delay_s(failures)
                _LOG.warning("watching %s: %s; trying again in %.1f s", KVCACHETIER.kind, error, delay_s)
                WATCH_RESTARTS.labels(KVCACHETIER.kind, type(error).__name__).inc()
                await asyncio.sleep(delay_s)

    def _registry(self, ours: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.ConnectionInfo:  # noqa: ANN401 - kopf's
            return await kopf_connection(self.configuration)

        async def handle(event: kopf.RawEvent, **_: Any) -> None:  # noqa: ANN401 - kopf's
            ours.call_soon_threadsafe(self.on_event, event["type"], event["object"])

        group, version = KVCACHETIER.api_version.split("/")
        kopf.on.login(registry=registry)(login)
        kopf.on.event(group, version, KVCACHETIER.plural, registry=registry)(handle)
        return registry


class _Backoffs:
    """Seconds between tries, without end: after the last one Kopf would start again in all namespaces."""

    def __iter__(self) -> Iterator[float]:
        yield from _FIRST_BACKOFFS_S
        yield from repeat(_LONGEST_BACKOFF_S)


def kopf_settings() -> kopf.OperatorSettings:
    """How Kopf watches: it posts nothing, scans nothing, and reads few large objects at a time."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # needs rights to CRDs and namespaces, and gives nothing here
    settings.watching.server_timeout = 290
    settings.watching.client_timeout = 300
    settings.watching.connect_timeout = 10
    settings.watching.inactivity_timeout = 100  # as the reflectors'
    settings.watching.chunk_size = 10  # each may be 1.5 MB, and is parsed into several times that
    settings.queueing.idle_timeout = 0.5
    settings.queueing.exit_timeout = 0.5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = _Backoffs()
    return settings


async def kopf_connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The official client's credentials as Kopf takes them; asked for again when they are refused."""
    token = await configuration.get_api_key_with_prefix("BearerToken")
    scheme, _, secret = (token or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        scheme=(scheme or "Bearer") if secret else None,
        token=secret or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
