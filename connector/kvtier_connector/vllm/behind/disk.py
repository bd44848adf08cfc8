"""Opens the disk tier of an engine."""

import os
import threading
import time
from pathlib import Path
from typing import Final

from vllm.config import VllmConfig

from kvtier_connector.config import DISK_WRITE_SHARE, ConnectorConfig
from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.messages import MemoryOf
from kvtier_connector.core.copies.arrivals import Arrivals, attach
from kvtier_connector.core.disk.files.fingerprint import Fingerprint
from kvtier_connector.core.disk.files.namespaces import removed_text
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import depth_for, open_engine
from kvtier_connector.core.disk.io.staged import StagedEngine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.index.hints import Sharing
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.region.region import RegionOffer
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import chunk_key_bytes

_STAGED_BYTES: Final = 64 << 20  # memory for transfers that do not use the chunks' own; 32 chunks of 2 MiB
_LEAST_STAGED_DEPTH: Final = 4


def open_tier_behind_region(  # noqa: PLR0913, PLR0917 - what an engine knows of itself
    settings: ConnectorConfig,
    geometry: TierGeometry,
    config: VllmConfig,
    fingerprint: Fingerprint,
    offer: RegionOffer,
    memory_of: MemoryOf,
    chunk_tokens: int,
    news: threading.Event,
) -> DiskTier:
    """Open the disk tier and read what the last engine left there.

    Raises SettingError: the folder or the capacity cannot be used; DiskError: another engine has the folder,
    or the disk is full, read-only or failing.
    """
    request = StoreRequest(
        path=replica_folder(settings.disk_path, config.parallel_config.data_parallel_index),
        capacity_bytes=settings.disk_capacity_bytes,
        block_bytes=geometry.chunk_bytes,
        key_bytes=chunk_key_bytes(config.cache_config.prefix_caching_hash_algo),
        fingerprint=fingerprint,
        direct=settings.disk_direct_io,
        holder=holder(config.model_config.model),
        sharing=Sharing.of(settings.disk_retained_share, settings.tenants),
    )

    return open_tier(
        request,
        memory_of,
        memory_slots=geometry.slots,
        chunk_tokens=chunk_tokens,
        write_bytes_per_hour=settings.disk_write_bytes_per_hour,
        timeout_s=settings.disk_timeout_s,
        always=not settings.disk_break_even,
        arrivals=attach(offer.arrivals) if offer.arrivals else None,
        news=news,
    )


def replica_folder(path: str, replica: int) -> Path:
    """Return the folder of one of several data-parallel engines: the first has the one that was named."""
    return Path(path) / (f"replica-{replica}" if replica else "")


def holder(model: str) -> str:
    """Return the line by which others are told who has a folder."""
    return f"engine {model} (process {os.getpid()} on {os.uname().nodename})"


def open_tier(  # noqa: PLR0913 - what a disk tier is made of
    request: StoreRequest,  # what is asked of the disk
    memory_of: MemoryOf,  # where a memory slot's bytes are
    *,
    memory_slots: int,  # number of slots in memory
    # tokens of a chunk; where each KV cache group has a chunk of its own, its part of them
    chunk_tokens: int,
    write_bytes_per_hour: int,  # bound on the disk's wear; 0 for none
    timeout_s: float,  # how long the disk may have one block
    staged: bool = False,  # never let the kernel have the slots' own memory (core/disk/io/staged.py)
    always: bool = True,  # read and write also what is computed sooner
    arrivals: Arrivals | None = None,  # where workers are told what is read in parts
    news: threading.Event | None = None,  # what wakes who waits for this tier, or another of the engine
) -> DiskTier:
    """Open a disk tier behind any memory."""
    start_s = time.monotonic()
    store = Store.open(request)
    depth = depth_for(request.block_bytes)
    if staged:  # through a bounded memory: large blocks go fewer at a time
        depth = max(_LEAST_STAGED_DEPTH, min(depth, _STAGED_BYTES // request.block_bytes))
    engine, report = open_engine(depth, folder=store.folder)
    log.info(
        "kvtier: disk tier %s in %s: %d of %d chunks found, %s, %s, %.1f s",
        format_bytes(request.capacity_bytes),
        store.folder,
        store.restored,
        store.shape.slots,
        report,
        "past the page cache" if store.segments.direct else "through the page cache",
        time.monotonic() - start_s,
    )
    for removed in store.removed:
        log.warning("kvtier: %s", removed_text(removed, chunk_tokens))
    if staged:
        engine = StagedEngine(engine, request.block_bytes)
    return DiskTier(
        DiskThread(DiskLoop(store, lambda: Store.open(request), engine, timeout_s, arrivals, news=news)),
        store,
        block_bytes=request.block_bytes,
        memory_of=memory_of,
        most_writes=max(1, memory_slots // DISK_WRITE_SHARE),
        budget=WriteBudget(write_bytes_per_hour, time.monotonic()),
        always=always,
    )
