"""An engine of any pace: it asks the tiers as vLLM's scheduler does, and sleeps where that computes."""

import hashlib
import mmap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vllm.v1.kv_offload.base import LookupResult, OffloadKey, ReqContext

from kvtier_connector.bench.parts.never_slower.throttled import ThrottledEngine
from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.disk.break_even import Pace, TokenSpan, WriteBudget
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import depth_for, open_engine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.vllm.offloading.manager import KVTierManager

CHUNK_TOKENS: Final = 64
TOKEN_BYTES: Final = 147_456
"""Of KV: Qwen3-8B in bfloat16."""
_BLOCK_BYTES: Final = 64 << 10
SCALE: Final = CHUNK_TOKENS * TOKEN_BYTES / _BLOCK_BYTES
"""A chunk's bytes are so many times those that are moved here, and the disk is as many times slower."""
_SLOTS: Final = 1024
_TIMEOUT_S: Final = 600.0
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class StandIn:
    """An engine's scheduler and a device that only takes time.

    Args:
        manager: of the tiers.
        disk: the tier on disk.
        pace: of computing.
    """

    manager: KVTierManager
    disk: DiskTier
    pace: Pace

    def ask(self, name: str, tokens: int) -> tuple[float, int]:
        """Serve one prompt; returns the seconds to its first token, and its tokens that a tier had."""
        start_s = time.monotonic()
        context = ReqContext(name)
        keys = [_key(name, chunk) for chunk in range(tokens // CHUNK_TOKENS)]
        for chunk, key in enumerate(keys, start=1):
            context.set_offload_key_position(key, chunk * CHUNK_TOKENS)
        found = self._look_up(keys, context)
        if found:
            self.manager.prepare_load(keys[:found], context)
            self.manager.complete_load(keys[:found], context)
        computed = TokenSpan.of(found * CHUNK_TOKENS, tokens)
        self.disk.break_even.prefill.add(computed, self.compute(computed))
        seconds = time.monotonic() - start_s
        stored = self.manager.prepare_store(keys[found:], context)
        self.manager.complete_store(stored.keys_to_store, context)
        if self.manager.disk is not None:
            self.manager.disk.on_schedule_end()  # the next step's
        self.manager.on_request_finished(context)
        return seconds, found * CHUNK_TOKENS

    def compute(self, computed: TokenSpan) -> float:
        """Take the time that computing takes; returns it, in seconds."""
        start_s = time.monotonic()
        time.sleep(self.pace.seconds(computed))
        return time.monotonic() - start_s

    def _look_up(self, keys: list[OffloadKey], context: ReqContext) -> int:
        """Return how many chunks are in memory, once those are that are worth being read."""
        side = self.manager.disk
        if side is None:
            return 0
        while True:
            side.poll()
            states = [self.manager.lookup(key, context) for key in keys]
            hits = [state in {LookupResult.HIT, LookupResult.HIT_PENDING} for state in states]
            first = hits.index(False) if False in hits else len(hits)
            if LookupResult.HIT_PENDING not in states[:first]:
                return first
            side.on_schedule_end()
            side.wait()


@contextmanager
def stand_in(folder: Path, disk_bytes_per_s: float, pace: Pace) -> Iterator[StandIn]:
    """Start an engine over a folder, which an earlier one may have left.

    Args:
        folder: of the disk tier.
        disk_bytes_per_s: as it is for a model's own bytes.
        pace: of computing.
    """
    memory = mmap.mmap(-1, _SLOTS * _BLOCK_BYTES)
    views = [memoryview(memory)[slot * _BLOCK_BYTES : (slot + 1) * _BLOCK_BYTES] for slot in range(_SLOTS)]
    request = StoreRequest(
        path=folder,
        capacity_bytes=4 * _SLOTS * _BLOCK_BYTES,
        block_bytes=_BLOCK_BYTES,
        key_bytes=KEY_BYTES,
        fingerprint=fingerprint({"model": "stand-in"}),
        direct=True,
        holder="kvtier bench",
    )
    store = Store.open(request)
    within, _ = open_engine(depth_for(_BLOCK_BYTES), folder=folder)
    engine = ThrottledEngine(within, disk_bytes_per_s / SCALE)
    disk = DiskTier(
        DiskThread(DiskLoop(store, lambda: Store.open(request), engine, _TIMEOUT_S)),
        store,
        block_bytes=_BLOCK_BYTES,
        memory_of=lambda slot: (views[slot],),
        most_writes=_SLOTS,
        budget=WriteBudget(0, time.monotonic()),
    )
    manager = KVTierManager(TierGeometry(_SLOTS, _BLOCK_BYTES, 1, 1), {0: CHUNK_TOKENS}, with_events=False)
    manager.put_behind(disk, KEY_BYTES, most_tokens=_SLOTS * CHUNK_TOKENS // 2)
    try:
        yield StandIn(manager, disk, pace)
    finally:
        engine.is_throttled = False
        while disk.is_busy and manager.disk is not None:
            disk.wait(_LOOK_S)
            manager.disk.poll()
        manager.shutdown()


def _key(name: str, chunk: int) -> OffloadKey:
    return OffloadKey(hashlib.sha256(f"{name}/{chunk}".encode()).digest() + bytes(4))
