"""How long a pick takes in the scheduling core, hashing included."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, thread_time
from typing import Final

import numpy as np

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.config.settings import PickerSettings, PrefixSettings, ScorerSetting
from kvtier_scorer.index import prefix_index
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.scheduling.model import BYTES_PER_TOKEN, PickRequest, Prompt, block_hashes
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable
from kvtier_scorer.scheduling.scheduler import Scheduler

_SETTINGS: Final = PickerSettings(
    scorers=(
        ScorerSetting(QUEUE, 2),
        ScorerSetting(KV_CACHE_UTILIZATION, 2),
        ScorerSetting(PREFIX_SCORERS[Tier.GPU], 1),
        ScorerSetting(PREFIX_SCORERS[Tier.CPU], 1),
    ),
    prefix=PrefixSettings(block_tokens=16, max_tokens=131072, entries={Tier.GPU: 4_000, Tier.CPU: 8_000}),
)
_SHARED: Final = 0.8
"""Of a prompt that is its group's; the rest is its own."""
_GROUPS: Final = 50
_HOLDERS: Final = 4


@dataclass(frozen=True, slots=True)
class PickTiming:
    """How long picks took: the median of the rounds' figures, and as spread their lowest and highest.

    Attributes:
        pods: Candidates.
        prompt_tokens: Tokens of each prompt, at 4 bytes of text.
        picks: In one round.
        rounds: How often that was repeated.
        pick_p50_ms: Of `Scheduler.pick`.
        pick_p99_ms: Of the same.
        pick_cpu_p99_ms: Of the processor time that it took, without what other processes had meanwhile.
        sent_p50_ms: Of `Scheduler.record_sent`, which the next request waits for.
        sent_p99_ms: Of the same.
        pick_p50_ms_spread: Of `pick_p50_ms`.
        pick_p99_ms_spread: Of `pick_p99_ms`.
        pick_cpu_p99_ms_spread: Of `pick_cpu_p99_ms`.
        sent_p50_ms_spread: Of `sent_p50_ms`.
        sent_p99_ms_spread: Of `sent_p99_ms`.
    """

    pods: int
    prompt_tokens: int
    picks: int
    rounds: int
    pick_p50_ms: float
    pick_p99_ms: float
    pick_cpu_p99_ms: float
    sent_p50_ms: float
    sent_p99_ms: float
    pick_p50_ms_spread: tuple[float, float]
    pick_p99_ms_spread: tuple[float, float]
    pick_cpu_p99_ms_spread: tuple[float, float]
    sent_p50_ms_spread: tuple[float, float]
    sent_p99_ms_spread: tuple[float, float]


def time_pick(
    pods: int = 1000, prompt_tokens: int = 30_000, picks: int = 400, rounds: int = 5, seed: int = 1
) -> PickTiming:
    """Time picks of long prompts among many pods.

    A quarter of the prompts share their first part with one that every pod holds, the most there is to look
    up; a quarter begin as nothing before them; the others' first parts are held by four pods each.

    Args:
        pods: Candidates.
        prompt_tokens: Of each prompt.
        picks: In one round.
        rounds: How often that is repeated.
        seed: Of prompts, loads and ties.
    """
    prefix_index.load_kernels()
    rng = np.random.default_rng(seed)
    index = PrefixIndex()
    table = PodTable(index)
    assert _SETTINGS.prefix is not None  # for the type checker
    for pod in range(pods):
        address = f"10.{pod >> 16}.{pod >> 8 & 255}.{pod & 255}:8000"
        table.put(PodInfo(f"pod-{pod}", address), _SETTINGS.prefix.first_entries)
        load = PodLoad(int(rng.integers(8)), 0, float(rng.random()), frozenset(), at_s=0.0)
        table.load(address, load)
    scheduler = Scheduler(_SETTINGS, table, index, rng)

    shared = int(prompt_tokens * _SHARED) * BYTES_PER_TOKEN
    everywhere = rng.bytes(shared)
    groups = [rng.bytes(shared) for _ in range(_GROUPS)]
    numbers = table.candidates(None).tolist()
    for number in numbers:
        _hold(index, number, everywhere)
    for group in groups:
        for number in rng.choice(numbers, min(_HOLDERS, pods), replace=False).tolist():
            _hold(index, number, group)

    rest = prompt_tokens * BYTES_PER_TOKEN - shared
    results = []
    for _ in range(rounds):
        starts = [
            everywhere if turn % 4 == 0 else rng.bytes(shared) if turn % 4 == 1 else groups[turn % _GROUPS]
            for turn in range(picks)
        ]
        requests = [PickRequest(Prompt("model", "", start + rng.bytes(rest))) for start in starts]
        results.append(_round(scheduler, requests))
    figures = list(zip(*results, strict=True))
    medians = [median(figure) for figure in figures]
    spreads = [(min(figure), max(figure)) for figure in figures]
    return PickTiming(pods, prompt_tokens, picks, rounds, *medians, *spreads)


def _hold(index: PrefixIndex, number: int, text: bytes) -> None:
    index.assume_stored(number, block_hashes(Prompt("model", "", text), _SETTINGS.prefix))


def _round(scheduler: Scheduler, requests: Sequence[PickRequest]) -> tuple[float, ...]:
    """P50, p99 and the processor's p99 of picking, then p50 and p99 of learning, in ms."""
    picking_ms, processing_ms, learning_ms = [], [], []
    gc.collect()
    for request in requests:
        begin_cpu_s = thread_time()
        begin_s = perf_counter()
        pick = scheduler.pick(request, now_s=0.1)
        picked_s = perf_counter()
        processing_ms.append((thread_time() - begin_cpu_s) * 1000)
        sending_s = perf_counter()
        scheduler.record_sent(pick)
        learned_s = perf_counter()
        picking_ms.append((picked_s - begin_s) * 1000)
        learning_ms.append((learned_s - sending_s) * 1000)
    return (
        *np.percentile(picking_ms, (50, 99)).tolist(),
        float(np.percentile(processing_ms, 99)),
        *np.percentile(learning_ms, (50, 99)).tolist(),
    )
