"""How much memory the prefix index takes for an entry, and how fast it learns and answers."""

import gc
import resource
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.index import prefix_index
from kvtier_scorer.index.prefix_index import PrefixIndex

_PROMPT_BLOCKS: Final = 1_875
"""30,000 tokens in blocks of 16."""
_MATCHES: Final = 200
_RESIDENT: Final = 1
"""Field of /proc/self/statm, in pages (proc_pid_statm(5))."""


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """One index that was filled and asked; rates are medians of the rounds, each with a new index.

    Attributes:
        entries: What it held at last.
        pods: How many pods shared them, each with two tiers.
        rounds: How often it was filled.
        bytes_per_entry: What the index counts, most of the rounds.
        resident_bytes_per_entry: What the process grew by, most of the rounds.
        inserts_per_s: New blocks learnt, an entry each.
        inserts_per_s_spread: Lowest and highest of the rounds.
        replacing_inserts_per_s: The same once the tiers are full and every new block evicts one.
        matches_per_s: Prompts of 1,875 blocks looked up in every pod.
        matches_per_s_spread: Lowest and highest of the rounds.
    """

    entries: int
    pods: int
    rounds: int
    bytes_per_entry: float
    resident_bytes_per_entry: float
    inserts_per_s: float
    inserts_per_s_spread: tuple[float, float]
    replacing_inserts_per_s: float
    matches_per_s: float
    matches_per_s_spread: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Round:
    counted_bytes: int
    resident_bytes: int
    inserts_per_s: float
    replacing_inserts_per_s: float
    matches_per_s: float


def measure_index(entries: int = 10_000_000, pods: int = 100, rounds: int = 3, seed: int = 1) -> IndexFigures:
    """Fill an index to the last entry, evict some and ask it.

    Args:
        entries: Of all pods together; each pod has half of its own in each of two tiers.
        pods: That share them, evenly.
        rounds: How often it is filled.
        seed: Of the hashes.

    Raises:
        ValueError: The entries cannot be divided evenly.
    """
    capacity, rest = divmod(entries, 2 * pods)
    if rest or not capacity:
        raise ValueError(f"{entries} entries cannot be divided among 2 tiers of {pods} pods")
    prefix_index.load_kernels()
    rng = np.random.default_rng(seed)
    results = [_round(capacity, pods, rng) for _ in range(rounds)]
    inserts = [result.inserts_per_s for result in results]
    matches = [result.matches_per_s for result in results]
    return IndexFigures(
        entries=entries,
        pods=pods,
        rounds=rounds,
        bytes_per_entry=max(result.counted_bytes for result in results) / entries,
        resident_bytes_per_entry=max(result.resident_bytes for result in results) / entries,
        inserts_per_s=median(inserts),
        inserts_per_s_spread=(min(inserts), max(inserts)),
        replacing_inserts_per_s=median(result.replacing_inserts_per_s for result in results),
        matches_per_s=median(matches),
        matches_per_s_spread=(min(matches), max(matches)),
    )


def _round(capacity: int, pods: int, rng: np.random.Generator) -> _Round:
    # hashes are as good as random: what they are made from does not matter to the index
    prompts = rng.integers(1 << 64, size=(-(-capacity // _PROMPT_BLOCKS), _PROMPT_BLOCKS), dtype=np.uint64)
    gc.collect()
    before_bytes = _resident_bytes()
    index = PrefixIndex()
    numbers = np.array(
        [index.add_pod({Tier.GPU: capacity, Tier.CPU: capacity}) for _ in range(pods)], np.int32
    )
    filled_s = _send(index, numbers, prompts)
    resident_bytes = _resident_bytes() - before_bytes
    held = sum(index.used_blocks(pod, tier) for pod in numbers.tolist() for tier in (Tier.GPU, Tier.CPU))
    if held != 2 * pods * capacity:
        raise AssertionError(f"{held} entries, not {2 * pods * capacity}: the measurement is wrong")
    counted_bytes = index.nbytes
    newer = prompts[: -(-len(prompts) // 10)] ^ np.uint64(1)
    replaced_s = _send(index, numbers, newer)
    begin_s = perf_counter()
    for turn in range(_MATCHES):
        index.match(newer[turn % len(newer)], numbers)
    matched_s = perf_counter() - begin_s
    return _Round(
        counted_bytes=counted_bytes,
        resident_bytes=resident_bytes,
        inserts_per_s=2 * pods * prompts.size / filled_s,
        replacing_inserts_per_s=2 * pods * newer.size / replaced_s,
        matches_per_s=_MATCHES / matched_s,
    )


def _send(index: PrefixIndex, pods: NDArray[np.int32], prompts: NDArray[np.uint64]) -> float:
    """Send every prompt to every pod, in turn as a picker would; the seconds that it took."""
    begin_s = perf_counter()
    for prompt in prompts:
        for pod in pods.tolist():
            index.assume_stored(pod, prompt)
    return perf_counter() - begin_s


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[_RESIDENT]) * resource.getpagesize()
