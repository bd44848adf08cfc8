"""One pod's /metrics as figures: its load, the sizes of its tiers, and the hits that it confirms."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Final

from kvtier_common.metrics.text import Families, Sample, read_labels
from kvtier_common.metrics.tier_metrics import (
    CAPACITY_TOKENS,
    DEVICE,
    DEVICE_BLOCKS,
    DEVICE_TOKENS,
    OFFLOADED,
    OFFLOADED_TOKENS,
)
from kvtier_common.tier import Tier
from kvtier_scorer.picker.observability.counters import HitTokens

_WAITING: Final = b"vllm:num_requests_waiting"
_RUNNING: Final = b"vllm:num_requests_running"
_USAGE: Final = b"vllm:kv_cache_usage_perc"
_USAGE_BEFORE_0_10: Final = b"vllm:gpu_cache_usage_perc"
_LORAS: Final = b"vllm:lora_requests_info"
_QUERIES: Final = b"vllm:prefix_cache_queries_total"
_HITS: Final = b"vllm:prefix_cache_hits_total"
_EXTERNAL_QUERIES: Final = b"vllm:external_prefix_cache_queries_total"
_EXTERNAL_HITS: Final = b"vllm:external_prefix_cache_hits_total"
_STARTED: Final = b"process_start_time_seconds"
WANTED: Final = frozenset({
    _WAITING, _RUNNING, _USAGE, _USAGE_BEFORE_0_10, _LORAS, DEVICE, OFFLOADED, *CAPACITY_TOKENS.values(),
    _QUERIES, _HITS, _EXTERNAL_QUERIES, _EXTERNAL_HITS, _STARTED,
})  # fmt: skip
"""What is to be looked for in the text."""
_LOAD: Final = (_WAITING, _RUNNING, _USAGE, _USAGE_BEFORE_0_10)
_MOST_REQUESTS: Final = float(1 << 40)
"""More than any engine queues, and few enough that the scheduler can add to them."""
_MOST_ENGINES: Final = 1024  # data-parallel engines of a pod, each with a line of information of its own
_MOST_LORAS: Final = 1024
_KEPT_LABELS: Final = 1024
_KEPT_BYTES: Final = 2048  # of labels that are read once, because those of information never change
_LONGEST_MODEL: Final = 1024
_kept_labels: Final = lru_cache(maxsize=_KEPT_LABELS)(read_labels)
_MOST: Final = 1 << 20
"""Of a tier that nobody planned, such as the device cache: 16 million tokens in blocks of 16."""
_TIMES_PLANNED: Final = 2
"""A tier may hold so many times what was planned: a hybrid model's tokens may cost less than that."""
_TOLERANCE: Final = 0.05
"""Capacities that differ by less stay: engines of one plan differ by some blocks, and a resize evicts."""


class NotMetricsError(ValueError):
    """The answer is not an engine's metrics; the message says what it is instead, in one line."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One scrape of one pod; its data-parallel engines are added up."""

    waiting: int  # requests in the queues
    running: int  # requests being computed
    kv_cache_utilization: float  # used share of the device's KV cache, 0 to 1; the mean of several engines
    loras: frozenset[str] = frozenset()  # adapters that are loaded or waited for
    # tokens that each tier can hold, for the tiers that reported it
    capacity_tokens: Mapping[Tier, int] = field(default_factory=dict)
    hits: HitTokens = field(default_factory=HitTokens)
    model: str = ""  # name under which the engine reports; empty where it is not reported
    engines: int = 1  # data-parallel engines behind the pod's one address
    started_s: float = 0.0  # when the pod's server started, in seconds since 1970; 0 where it is not reported


def engine_metrics(families: Families) -> EngineMetrics:
    """Makes figures of a page; NotMetricsError if it is not vLLM's, or does not tell the load in numbers."""
    for name in _LOAD:
        if name in families.unreadable:
            raise NotMetricsError(f"{name.decode()} is not a number of 0 or more")
    if not families.of(_WAITING) or not families.of(_RUNNING):
        raise NotMetricsError(f"no {_WAITING.decode()} in it; it begins with {families.start!r}")
    name = _USAGE if families.of(_USAGE) else _USAGE_BEFORE_0_10
    usage = families.of(name)
    utilization = families.total(name) / len(usage) if usage else 0.0
    return EngineMetrics(
        waiting=int(min(families.total(_WAITING), _MOST_REQUESTS)),
        running=int(min(families.total(_RUNNING), _MOST_REQUESTS)),
        kv_cache_utilization=min(1.0, utilization),
        loras=_loras(families.of(_LORAS)),
        capacity_tokens=_capacities(families),
        hits=HitTokens(*map(families.total, (_QUERIES, _HITS, _EXTERNAL_QUERIES, _EXTERNAL_HITS))),
        model=_labels(families.of(_RUNNING)[0][0]).get("model_name", "")[:_LONGEST_MODEL],
        engines=len(families.of(_RUNNING)),
        started_s=families.total(_STARTED),
    )


def _labels(text: bytes) -> Mapping[str, str]:
    return _kept_labels(text) if len(text) <= _KEPT_BYTES else read_labels(text)


def _loras(samples: Sequence[Sample]) -> frozenset[str]:
    """The value is when the labels were true; the newest are (v1/metrics/loggers.py)."""
    if not samples:
        return frozenset()
    labels = _labels(max(samples, key=lambda sample: sample[1])[0])
    names = ",".join(labels.get(f"{state}_lora_adapters", "") for state in ("running", "waiting"))
    loras = (name.strip() for name in names.split(","))
    return frozenset(islice(filter(None, loras), _MOST_LORAS))


def _capacities(families: Families) -> Mapping[Tier, int]:
    by_tier = {Tier.GPU: _device_tokens(families.of(DEVICE))}
    by_tier |= {tier: int(families.total(name)) for tier, name in CAPACITY_TOKENS.items()}
    if not families.of(CAPACITY_TOKENS[Tier.CPU]):
        by_tier[Tier.CPU] = _sum_of_label(families.of(OFFLOADED), OFFLOADED_TOKENS)
    return {tier: tokens for tier, tokens in by_tier.items() if tokens}


def _device_tokens(samples: Sequence[Sample]) -> int:
    tokens = _sum_of_label(samples, DEVICE_TOKENS)
    if tokens or not samples:
        return tokens
    first = _labels(samples[0][0])
    return prod(_whole_number(first.get(name)) for name in DEVICE_BLOCKS)


def _sum_of_label(samples: Sequence[Sample], name: str) -> int:
    """The sum over all engines; 0 where one of them does not tell it, or there are more than any pod has."""
    if len(samples) > _MOST_ENGINES:
        return 0
    numbers = [_whole_number(_labels(labels).get(name)) for labels, _ in samples]
    return sum(numbers) if all(numbers) else 0


def _whole_number(text: str | None) -> int:
    """A label as a whole number of at most 15 digits; 0 where it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 15 else 0  # noqa: PLR2004


def increase(before: HitTokens, now: HitTokens) -> HitTokens:
    """What was added since `before`.

    A counter that is lower than before belongs to an engine that started anew; all of it is new, and all of
    the other counters too, whatever they have reached meanwhile.
    """
    pairs = tuple(zip(astuple(before), astuple(now), strict=True))
    if any(after < earlier for earlier, after in pairs):
        return now
    return HitTokens(*(after - earlier for earlier, after in pairs))


def most_entries(planned: Mapping[Tier, int | None]) -> Mapping[Tier, int]:
    """The most that a pod's word is taken for; a plan of None is for the engine to tell."""
    return {tier: _MOST if entries is None else _TIMES_PLANNED * entries for tier, entries in planned.items()}


def new_entries(
    entries: Mapping[Tier, int],
    capacity_tokens: Mapping[Tier, int],
    block_tokens: int,
    most: Mapping[Tier, int],
) -> Mapping[Tier, int]:
    """Capacities to change, in entries of the index, within `most` (see `most_entries`).

    They are ceil(tokens / block_tokens), for the tiers in which that differs by more than 5 percent. A tier
    that is not in `entries` has no index and gets none; what the pod did not report stays.
    """
    reported = {
        tier: min(-(-tokens // block_tokens), most[tier])
        for tier, tokens in capacity_tokens.items()
        if tier in entries
    }
    return {
        tier: true
        for tier, true in reported.items()
        if abs(true - entries[tier]) > _TOLERANCE * entries[tier]
    }
