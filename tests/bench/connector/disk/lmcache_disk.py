"""LMCache's LocalDisk backend, called as its storage manager calls it."""

import asyncio
import ctypes
import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.memory_management import MemoryFormat
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend
from lmcache.v1.storage_backend.local_disk_backend import LocalDiskBackend
from tests.bench.connector.disk.work import Op, Work

_DIRECT: Final = {"page cache": False, "O_DIRECT": True}
_GIB: Final = 1 << 30
_ROOM: Final = 1.5
"""Of memory, over a sample's: its allocator leaves gaps."""
_OUTSTANDING: Final = 64
"""Chunks that are being stored at a time. LMCache takes any number, but searches all of them for each new
one, and with its own chunk size (256 tokens) a long prompt has about so many."""
_HEADS, _HEAD_SIZE, _LAYERS = 8, 32, 4
_TOKEN_BYTES: Final = 2 * _LAYERS * _HEADS * _HEAD_SIZE * 2  # keys and values, bfloat16


class LMCacheDisk:
    """Moves chunks between LMCache's CPU pool and its files, with its default number of threads.

    By default it goes through the page cache. Its stores then count as done when the disk has them, and its
    loads find nothing in the cache.
    """

    variants = tuple(_DIRECT)

    def __init__(self, work: Work) -> None:
        tokens = work.block_bytes // _TOKEN_BYTES
        config = LMCacheEngineConfig.from_defaults(
            chunk_size=tokens,
            local_cpu=False,
            max_local_cpu_size=_ROOM * work.sample_bytes / _GIB,
            local_disk=f"file://{Path(work.folder).resolve()}/",
            max_local_disk_size=2 * work.blocks * work.block_bytes / _GIB,
        )
        self._shape = torch.Size([2, _LAYERS, tokens, _HEADS * _HEAD_SIZE])
        metadata = LMCacheMetadata(
            model_name="bench",
            world_size=1,
            local_world_size=1,
            worker_id=0,
            local_worker_id=0,
            kv_dtype=torch.bfloat16,
            kv_shape=(_LAYERS, 2, tokens, _HEADS, _HEAD_SIZE),
            chunk_size=tokens,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._cpu = LocalCPUBackend(config, metadata, dst_device="cpu")
        self._disk = LocalDiskBackend(config, self._loop, self._cpu, dst_device="cpu", metadata=metadata)
        self._folder = os.open(work.folder, os.O_RDONLY | os.O_DIRECTORY)
        self._keys = [_key(block) for block in range(work.blocks)]
        self._held: list[Any] = []
        self._libc = ctypes.CDLL(None, use_errno=True)

    def before(self, op: Op, blocks: Sequence[int]) -> list[memoryview]:
        """Give memory back; remove the chunks that are stored anew, or drop them from the page cache.

        LMCache's `remove` leaves them counted, so that it would begin to evict others: that is put right.
        """
        self._give_back()
        if op == "load":
            for block in blocks:
                self._drop_cached(self._disk.dict[self._keys[block]].path)
            return []
        for block in blocks:
            if self._disk.contains(self._keys[block]):
                self._disk.current_cache_size -= self._disk.dict[self._keys[block]].size
                self._disk.remove(self._keys[block])
        os.sync()
        self._held = [self._allocate() for _ in blocks]
        return [memory.byte_array for memory in self._held]

    def run(self, op: Op, blocks: Sequence[int], variant: str) -> None:
        """Store chunks and wait until the disk has them, or load them."""
        self._disk.use_odirect = _DIRECT[variant]
        if op == "load":
            found = self._disk.batched_get_blocking([self._keys[block] for block in blocks])
            self._held = [memory for memory in found if memory is not None]
            if len(self._held) < len(blocks):
                raise OSError(f"LMCache loaded {len(self._held)} of {len(blocks)} chunks")
            return
        room = threading.Semaphore(_OUTSTANDING)
        for block, memory in zip(blocks, self._held, strict=True):
            room.acquire()
            self._disk.submit_put_task(self._keys[block], memory, lambda _key: room.release())
        for _ in range(_OUTSTANDING):
            room.acquire()
        if not self._disk.use_odirect and self._libc.syncfs(self._folder):
            raise OSError(ctypes.get_errno(), "syncfs")

    def loaded(self) -> list[memoryview]:
        """Return the memory of what was loaded last."""
        return [memory.byte_array for memory in self._held]

    def close(self) -> None:
        """End its threads."""
        self._give_back()
        self._disk.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        os.close(self._folder)

    def _allocate(self) -> Any:  # noqa: ANN401 - LMCache's type
        memory = self._cpu.allocate(self._shape, torch.bfloat16, MemoryFormat.KV_2LTD)
        if memory is None:
            raise MemoryError("LMCache's pool has no room for a sample")
        return memory

    def _give_back(self) -> None:
        for memory in self._held:
            memory.ref_count_down()
        self._held = []

    @staticmethod
    def _drop_cached(path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _key(block: int) -> CacheEngineKey:
    number = int.from_bytes(hashlib.sha256(block.to_bytes(8, "big")).digest()[:8], "big")
    return CacheEngineKey("bench", 1, 0, number, torch.bfloat16)
