"""This project's disk tier, driven as its manager drives it: orders to a thread, checksums on."""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from tests.bench.connector.disk.work import Op, Work

from kvtier_connector.config import KEY_BYTES, Policy
from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import depth_for, open_engine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.region import region

_HUGEPAGE_BYTES: Final = 2 << 20
_TIMEOUT_S: Final = 60.0
_RECORDS_BYTES: Final = 1 << 10
"""Of the capacity, for each block, more than its records in the index file take."""
_SPARE_BYTES: Final = 2 << 20


class KVTierDisk:
    """Moves blocks between a region, as the engine's ranks share it, and the tier's files."""

    variants: tuple[str, ...] = ("default",)

    def __init__(self, work: Work) -> None:
        asked = region.RegionRequest(1, work.sample_bytes, True, Policy.PREFER, _HUGEPAGE_BYTES)  # noqa: FBT003
        handle, descriptor = region.create(asked)
        try:
            self._rank = region.attach(handle, 0)
            whole, size = region.open_whole(handle), work.block_bytes
        finally:
            os.close(descriptor)  # or its pages stay as long as this process
        self._memories = [whole[place * size : (place + 1) * size] for place in range(work.sample_blocks)]
        request = StoreRequest(
            path=Path(work.folder),
            capacity_bytes=work.blocks * (size + _RECORDS_BYTES) + _SPARE_BYTES,
            block_bytes=size,
            key_bytes=KEY_BYTES,
            fingerprint=fingerprint({"model": "bench"}),
            direct=True,
            holder="kvtier bench",
        )
        self._store = Store.open(request)
        engine, _ = open_engine(depth_for(size), folder=request.path)
        self._tier = DiskTier(
            DiskThread(DiskLoop(self._store, lambda: Store.open(request), engine, _TIMEOUT_S)),
            self._store,
            block_bytes=size,
            memory_of=lambda place: (self._memories[place],),
            most_writes=work.blocks,
            budget=WriteBudget(0, time.monotonic()),
        )
        self._keys = [_key(block) for block in range(work.blocks)]

    def before(self, op: Op, blocks: Sequence[int]) -> list[memoryview]:
        """Forget blocks that are stored anew; their slots are written again, as after an eviction."""
        if op == "load":
            return []
        self._store.index.invalidate([self._keys[block] for block in blocks])
        return self._memories[: len(blocks)]

    def run(self, op: Op, blocks: Sequence[int], variant: str) -> None:
        """Order blocks to be stored or loaded, and wait until the tier says that they all are.

        Raises:
            OSError: the tier did not store or load one.
        """
        del variant
        keys = [self._keys[block] for block in blocks]
        places = np.arange(len(keys), dtype=np.int32)
        found = Progress()
        if op == "store":
            self._tier.store(self._tier.admit(self._tier.lacking(keys)), places, found)
        else:
            self._tier.load(keys, places)
        done, until_s = 0, time.monotonic() + _TIMEOUT_S
        while done < len(keys):
            self._tier.wait(until_s - time.monotonic())
            progress = self._tier.poll() or Progress()
            done += len(progress.stored) + len(progress.loaded)
            if progress.lost or len(progress.released) > len(progress.stored) or time.monotonic() > until_s:
                raise OSError(f"{done} of {len(keys)} blocks: {self._tier.take_counts()} {progress.notes}")

    def loaded(self) -> list[memoryview]:
        """Return the region's first blocks."""
        return self._memories

    def close(self) -> None:
        """End the thread and let go of the files."""
        self._tier.close()


def _key(block: int) -> bytes:
    return hashlib.sha256(block.to_bytes(8, "big")).digest() + bytes(4)
