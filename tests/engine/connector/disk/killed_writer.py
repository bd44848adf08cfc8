"""Writes the chunks of a file to a disk tier again and again, in changing order. A program, to be killed."""

import pickle
import random
import sys
from pathlib import Path

import numpy as np

from kvtier_connector.config import DISK_ALIGNMENT_BYTES
from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import open_engine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread


def main(chunks_file: str, seed: int) -> None:
    request: StoreRequest
    chunks: dict[bytes, bytes]
    request, chunks = pickle.loads(Path(chunks_file).read_bytes())  # noqa: S301 - the test has just written it
    size = request.block_bytes
    raw = np.empty(len(chunks) * size + DISK_ALIGNMENT_BYTES, np.uint8)
    memory = raw[-raw.ctypes.data % DISK_ALIGNMENT_BYTES :].data[: len(chunks) * size]
    slot_of = dict(zip(chunks, range(len(chunks)), strict=True))
    for key, payload in chunks.items():
        memory[slot_of[key] * size : (slot_of[key] + 1) * size] = payload

    store = Store.open(request)
    thread = DiskThread(DiskLoop(store, lambda: Store.open(request), open_engine(32)[0], 5.0))
    tier = DiskTier(
        thread,
        store,
        block_bytes=size,
        memory_of=lambda slot: (memory[slot * size : (slot + 1) * size],),
        most_writes=len(chunks),
        budget=WriteBudget(0, 0.0),
    )
    order = random.Random(seed)  # noqa: S311 - not for secrets
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        keys = tier.admit(tier.lacking(order.sample(list(chunks), len(chunks))))
        tier.store(keys, np.array([slot_of[key] for key in keys], np.int32), Progress())
        while tier.is_busy:
            tier.wait(1.0)
            tier.poll()
        sys.stdout.write("stored\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
