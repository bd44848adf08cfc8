"""The only module that knows kopf: it watches the KVCacheTiers and hands every event on.

kopf writes nothing here: event handlers need neither its finalizer nor its annotations (ADR 0007).
"""

import asyncio
import logging
from typing import Any, Final

import kopf
from kubernetes.aio.client import Configuration

from kvtier_operator.reconcile.controller import Controller
from kvtier_operator.reconcile.kinds import TIER
from kvtier_operator.reconcile.metrics import WATCH_RESTARTS
from kvtier_operator.reconcile.queue import backoff_s

_LOG: Final = logging.getLogger(__name__)


async def watch_resources(
    controller: Controller, configuration: Configuration, namespaces: tuple[str, ...]
) -> None:
    """Runs kopf until it is told to stop by a signal; starts it anew when it gives up."""
    logging.getLogger("kopf").setLevel(logging.WARNING)
    failures = 0
    while True:
        try:
            await kopf.operator(
                registry=_registry(controller, configuration),
                settings=_settings(),
                standalone=True,
                clusterwide=not namespaces,
                namespaces=namespaces,
            )
        except Exception as error:  # noqa: BLE001 - kopf raises whatever its client did not expect
            failures += 1
            delay_s = backoff_s(failures)
            _LOG.warning("watching %s: %s; trying again in %.1f s", TIER.kind, error, delay_s)
            WATCH_RESTARTS.labels(TIER.kind, type(error).__name__).inc()
            await asyncio.sleep(delay_s)
        else:
            return


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # needs rights to CRDs and namespaces, and gives nothing here
    settings.watching.server_timeout = 290
    settings.watching.client_timeout = 300
    settings.watching.connect_timeout = 10
    settings.watching.inactivity_timeout = 75
    settings.watching.chunk_size = 200
    settings.queueing.idle_timeout = 0.5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = (1, 2, 5)
    return settings


def _registry(controller: Controller, configuration: Configuration) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:  # noqa: ANN401 - kopf's
        return await _connection(configuration)

    async def event(event: kopf.RawEvent, **_: Any) -> None:  # noqa: ANN401 - kopf's
        controller.resource_event(event["type"], event["object"])

    group, version = TIER.api_version.split("/")
    kopf.on.login(registry=registry)(login)
    kopf.on.event(group, version, TIER.plural, registry=registry)(event)
    return registry


async def _connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The official client's credentials in kopf's words; asked for again when they are refused."""
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
