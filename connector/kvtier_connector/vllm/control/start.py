"""Opens the control socket of an engine."""

from functools import partial
from pathlib import Path

from vllm.config import VllmConfig
from vllm.v1.core.kv_cache_manager import KVCacheManager

from kvtier_connector.config import ConnectorConfig
from kvtier_connector.core.control.client import socket_name
from kvtier_connector.core.control.socket_server import ControlServer
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.control.control import Control
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.device_cache import DeviceCache
from kvtier_connector.vllm.upstream.engine_loop import (
    EngineLoop,
    engine_being_made,
    has_loop,
    hashed_prompt,
)
from kvtier_connector.vllm.upstream.offloading import UpstreamScheduler


def open_control(
    settings: ConnectorConfig,
    config: VllmConfig,
    upstream: UpstreamScheduler,
    manager: KVTierManager,
    kv_cache_manager: KVCacheManager,
) -> ControlServer | None:
    """Serve the socket of the engine that is being made; None where it has none.

    An engine that has another's owner serves without it. Raises ConnectorError: it cannot be had.
    """
    engine = engine_being_made() if settings.control_path else None
    if engine is None:
        return None
    if not has_loop(engine):
        log.warning("kvtier: no control socket: this engine runs in its caller's process")
        return None
    try:
        device = DeviceCache(kv_cache_manager)
        loop = EngineLoop(engine)
        rank = config.parallel_config.data_parallel_index
        control = Control(
            upstream,
            manager,
            device,
            rank=rank,
            most_tokens=config.model_config.max_model_len,
            tenants=settings.tenants,
            hash_prompt=partial(hashed_prompt, engine),
            call=loop.call,
            hold=upstream.hold_manager,
        )
        server = ControlServer(Path(settings.control_path), socket_name(rank), control.answer)
    except ConnectorError as error:
        if not settings.attached:
            raise
        log.warning("kvtier: the engine goes on without a control socket: %s", error)
        return None
    log.info("kvtier: the control socket is %s/%s", settings.control_path, socket_name(rank))
    return server
