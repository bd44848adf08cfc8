"""The index and vLLM's own, side by side in one run: resident bytes a block, and the longest operation.

Each runs in a process of its own, so that memory is its own; the two take turns, so that a noisy machine
disturbs both.
"""

import gc
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from kvtier_connector.bench.measure import Row

if TYPE_CHECKING:
    from kvtier_connector.bench.measure import Run


MEMORY_BLOCKS: Final = 1_000_000
STALL_BLOCKS: Final = 400_000
BATCH: Final = 256
ROUNDS: Final = 3
_GROUP: Final = bytes(4)


class KVTierSubject:
    """This package's index, called as its manager calls it."""

    def __init__(self, capacity: int) -> None:
        from kvtier_connector.core.index.index import BlockIndex  # noqa: PLC0415 - counted in this subject's memory only

        self._index = BlockIndex(capacity, 36)

    def prepare_store(self, keys: list[bytes]) -> None:
        """Give slots to keys."""
        self._index.reserve(keys)

    def complete_store(self, keys: list[bytes]) -> None:
        """Make keys loadable."""
        self._index.commit(keys)

    def lookup(self, keys: list[bytes]) -> None:
        """Find keys one by one."""
        for key in keys:
            self._index.state(key)

    def load(self, keys: list[bytes]) -> None:
        """Pin and unpin keys."""
        self._index.pin(keys)
        self._index.unpin(keys)


class VLLMSubject:
    """vLLM's CPUOffloadingManager with its LRU policy."""

    def __init__(self, capacity: int) -> None:
        from vllm.v1.kv_offload.base import ReqContext  # noqa: PLC0415 - as above
        from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager  # noqa: PLC0415 - as above

        self._manager = CPUOffloadingManager(num_chunks=capacity, cache_policy="lru")
        self._context_type = ReqContext
        self._requests = 0

    def _context(self) -> object:
        self._requests += 1
        return self._context_type(req_id=str(self._requests))

    def prepare_store(self, keys: list[bytes]) -> None:
        """Give chunks to keys."""
        self._manager.prepare_store(keys, self._context())

    def complete_store(self, keys: list[bytes]) -> None:
        """Make keys loadable."""
        self._manager.complete_store(keys, self._context())

    def lookup(self, keys: list[bytes]) -> None:
        """Find keys one by one."""
        context = self._context()
        for key in keys:
            self._manager.lookup(key, context)

    def load(self, keys: list[bytes]) -> None:
        """Protect keys and release them."""
        self._manager.prepare_load(keys, self._context())
        self._manager.complete_load(keys, self._context())


SUBJECTS: Final[dict[str, type[KVTierSubject | VLLMSubject]]] = {"kvtier": KVTierSubject, "vllm": VLLMSubject}


def _batches(count: int, start: int = 0) -> Iterator[list[bytes]]:
    for first in range(start, start + count, BATCH):
        numbers = range(first, min(first + BATCH, start + count))
        yield [hashlib.sha256(number.to_bytes(8, "big")).digest() + _GROUP for number in numbers]


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measure_memory(name: str) -> float:
    """Return resident bytes a block of a full index, this process being fresh."""
    SUBJECTS[name](BATCH).prepare_store(next(_batches(BATCH)))  # imports and caches are not the index's
    before = _resident_bytes()
    subject = SUBJECTS[name](MEMORY_BLOCKS)
    for keys in _batches(MEMORY_BLOCKS):
        subject.prepare_store(keys)
        subject.complete_store(keys)
    return (_resident_bytes() - before) / MEMORY_BLOCKS


def measure_stalls(name: str) -> dict[str, float]:
    """Return milliseconds of each operation, filling an index and then evicting from it."""
    subject = SUBJECTS[name](STALL_BLOCKS)
    times: dict[str, list[float]] = {}
    cpu_times: dict[str, list[float]] = {}  # what a preempted process would have taken
    steps = ("prepare_store", "complete_store", "lookup", "load")
    for keys in _batches(2 * STALL_BLOCKS):
        for step in steps:
            operation = getattr(subject, step)
            start, start_cpu = time.perf_counter(), time.thread_time()
            operation(keys)
            times.setdefault(step, []).append((time.perf_counter() - start) * 1e3)
            cpu_times.setdefault(step, []).append((time.thread_time() - start_cpu) * 1e3)
    figures = {f"{step}_median_ms": median(times[step]) for step in steps}
    figures |= {f"{step}_max_cpu_ms": max(cpu_times[step]) for step in steps}
    return figures | {
        "max_ms": max(max(taken) for taken in times.values()),
        "max_cpu_ms": max(max(taken) for taken in cpu_times.values()),
    }


def _in_fresh_process(what: str, name: str) -> Any:  # noqa: ANN401 - it is JSON
    command = [sys.executable, "-m", __name__, what, name]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ourselves
    return json.loads(answer.stdout.splitlines()[-1])


def measure(_run: "Run") -> dict[str, Any]:
    """Measure both indexes, taking turns.

    Returns:
        For each, bytes a block at MEMORY_BLOCKS, and, of the longest operations at STALL_BLOCKS in each
        round, the smallest: a machine shared with others adds its own pauses, but takes none away.

    Raises:
        ModuleNotFoundError: there is no vLLM to measure.
    """
    result: dict[str, Any] = {"batch": BATCH, "memory_blocks": MEMORY_BLOCKS, "stall_blocks": STALL_BLOCKS}
    for name in SUBJECTS:
        result[f"{name}_bytes_per_block"] = _in_fresh_process("memory", name)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SUBJECTS}
    for _ in range(ROUNDS):
        for name in SUBJECTS:
            rounds[name].append(_in_fresh_process("stalls", name))
    for name, measured in rounds.items():
        best = min(measured, key=lambda figures: figures["max_ms"])
        result[f"{name}_max_ms"] = best["max_ms"]
        result[f"{name}_max_cpu_ms"] = min(figures["max_cpu_ms"] for figures in measured)
        result[f"{name}_max_ms_of_each_round"] = [figures["max_ms"] for figures in measured]
        result[f"{name}_operations"] = best
    return result


def rows(index: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    yield (
        "index, resident bytes a block",
        f"{index['kvtier_bytes_per_block']:.0f}",
        f"vLLM's LRU {index['vllm_bytes_per_block']:.0f}",
        "100",
    )
    yield (
        f"index, longest operation on {index['batch']} keys, ms",
        f"{index['kvtier_max_ms']:.2f}",
        f"vLLM's LRU {index['vllm_max_ms']:.2f}",
        "1",
    )
    yield (
        "  of it on the CPU (the rest is other processes), ms",
        f"{index['kvtier_max_cpu_ms']:.2f}",
        f"vLLM's LRU {index['vllm_max_cpu_ms']:.2f}",
        "",
    )


if __name__ == "__main__":
    of_one: Any = {"memory": measure_memory, "stalls": measure_stalls}[sys.argv[1]]
    sys.stdout.write(json.dumps(of_one(sys.argv[2])) + "\n")
