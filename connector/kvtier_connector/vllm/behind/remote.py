"""Opens the remote tier of an engine."""

import threading
from collections.abc import Callable

from kvtier_connector.config import DISK_WRITE_SHARE, ConnectorConfig
from kvtier_connector.core.behind.break_even import PrefillModel
from kvtier_connector.core.behind.messages import MemoryOf
from kvtier_connector.core.disk.files.fingerprint import Fingerprint
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.remote.engines import store_of
from kvtier_connector.core.remote.seals import read_mac_key
from kvtier_connector.core.remote.store import StoreSettings
from kvtier_connector.core.remote.tier import RemoteTier
from kvtier_connector.core.remote.transfers import RemoteThreads
from kvtier_connector.core.remote.values import BlockLayout
from kvtier_connector.vllm.upstream.compat import log


def open_remote_tier(  # noqa: PLR0913 - what a remote tier is made of
    settings: ConnectorConfig,
    fingerprint: Callable[[], Fingerprint],
    memory_of: MemoryOf,
    *,
    block_bytes: int,  # of a chunk, all ranks together
    memory_slots: int,  # number of slots in memory
    news: threading.Event | None = None,  # what wakes who waits for this tier, or another of the engine
    prefill: PrefillModel | None = None,  # of the engine, where another tier has begun it
) -> RemoteTier:
    """Begin to connect to the store, without which an engine starts, too.

    Raises SettingError: its URL or its key is bad.
    """
    store = store_of(
        StoreSettings(
            settings.remote_url,
            settings.remote_credentials_path,
            settings.remote_ca_path,
            settings.remote_timeout_s,
        )
    )
    mac_key = read_mac_key(settings.remote_mac_key_path) if settings.remote_mac_key_path else b""
    layout = BlockLayout(settings.remote_share, fingerprint, block_bytes, mac_key=mac_key)
    log.info(
        "kvtier: remote tier of %s, share %s, %d values a chunk of %s",
        ", ".join(store.servers),
        settings.remote_share,
        len(layout.pieces),
        format_bytes(block_bytes),
    )
    threads = RemoteThreads(
        store.connect,
        layout,
        connections=settings.remote_connections,
        ttl_s=settings.remote_ttl_s,
        connect_timeout_s=settings.remote_timeout_s,
        reads_newest=settings.warm_start_s > 0,
        news=news,
    )
    return RemoteTier(
        threads,
        capacity_bytes=settings.remote_capacity_bytes,
        block_bytes=block_bytes,
        memory_of=memory_of,
        most_writes=max(1, memory_slots // DISK_WRITE_SHARE),
        write_bytes_per_s=settings.remote_write_bytes_per_s,
        prefill=prefill,
        always=not settings.remote_break_even,
    )
