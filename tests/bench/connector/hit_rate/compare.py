"""Hit rates of the index's eviction, of LRU, of ARC and of the optimum, on traces like those of LLM serving.

What is counted are chunks: a chunk of a prompt is a hit if it and all chunks before it are present when the
prompt arrives, since only such a prefix can be loaded. The rate is hits over all chunks of all prompts but
the first WARM_UP of the trace, in which every cache fills.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from tests.bench.connector.hit_rate.caches import ARCCache, Cache, LRUCache, Prompt, optimal_hits
from tests.bench.connector.hit_rate.workloads import WORKLOADS, Workload

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.core.index.block import BlockState
from kvtier_connector.core.index.index import BlockIndex

SEEDS: Final = (11, 12, 13)
"""Of the traces that are shown; the policy's constants were chosen on others."""
WARM_UP: Final = 0.2


class KVTierCache:
    """The tier's index, called as vLLM calls its manager for a request."""

    def __init__(self, capacity: int) -> None:
        self._index = BlockIndex(capacity, 8)

    def use(self, prompt: Prompt) -> int:
        """Look up until the first miss, load what was found, store the rest."""
        keys = [chunk.to_bytes(8, "little") for chunk in prompt]
        ready = (place for place, key in enumerate(keys) if self._index.state(key) is not BlockState.READY)
        found = next(ready, len(keys))
        self._index.pin(keys[:found])
        self._index.unpin(keys[:found])
        own = set(keys)
        self._index.commit(self._index.reserve(keys[found:], keep=own.__contains__).keys)
        return found


def hit_rate(trace: Sequence[Prompt], hits: Sequence[int]) -> float:
    """Return the share of chunks that were found, after the warm-up."""
    first = int(len(trace) * WARM_UP)
    return sum(hits[first:]) / sum(map(len, trace[first:]))


def compare(workload: Workload, capacity: int, seed: int) -> dict[str, Any]:
    """Run one trace through all caches of one size."""
    trace = workload.trace(seed)
    caches: dict[str, Cache] = {
        "kvtier": KVTierCache(capacity),
        "lru": LRUCache(capacity),
        "arc": ARCCache(capacity),
    }
    rates = {name: hit_rate(trace, [cache.use(prompt) for prompt in trace]) for name, cache in caches.items()}
    optimal = hit_rate(trace, optimal_hits(trace, capacity))
    return {"workload": workload.name, "capacity_chunks": capacity, **rates, "optimal": optimal}


def measure(_run: Run) -> list[dict[str, Any]]:
    """Return the hit rates on every workload with every size of cache, means over the seeds."""
    return [_mean(workload, capacity) for workload in WORKLOADS for capacity in workload.capacities]


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for each in found:
        yield (
            f"hit rate, {each['workload']}, {each['capacity_chunks']} chunks",
            f"{each['kvtier']:.3f}",
            f"LRU {each['lru']:.3f}, ARC {each['arc']:.3f}, optimal {each['optimal']:.3f}",
            "",
        )


def _mean(workload: Workload, capacity: int) -> dict[str, Any]:
    found = [compare(workload, capacity, seed) for seed in SEEDS]
    means = {name: fmean(each[name] for each in found) for name in ("kvtier", "lru", "arc", "optimal")}
    return {"workload": workload.name, "capacity_chunks": capacity, **means}
