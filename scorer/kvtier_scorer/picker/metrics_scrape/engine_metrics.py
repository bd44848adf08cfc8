"""Reads what a picker needs from one pod's /metrics, and nothing else of it.

The text of one engine has about 60 KB, nearly all of it histograms. So lines are told apart by a few of their
bytes, and lines of labels that never change are read once.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Final

from kvtier_scorer.tier import Tier

_WAITING: Final = b"vllm:num_requests_waiting"
_RUNNING: Final = b"vllm:num_requests_running"
_USAGE: Final = b"vllm:kv_cache_usage_perc"
_USAGE_BEFORE_0_10: Final = b"vllm:gpu_cache_usage_perc"
_LORAS: Final = b"vllm:lora_requests_info"
_DEVICE: Final = b"vllm:cache_config_info"
"""v1/metrics/loggers.py; its labels are the fields of config/cache.py."""
_OFFLOADED: Final = b"vllm:kv_offload_config_info"
"""vLLM 0.33, from its first scheduler step on."""
_LABEL_OF_CPU: Final = "cpu_kv_cache_size_tokens"
_KVTIER_CPU: Final = b"vllm:kvtier_cpu_capacity_tokens"
_KVTIER_DISK: Final = b"vllm:kvtier_disk_capacity_tokens"
_QUERIES: Final = b"vllm:prefix_cache_queries_total"
_HITS: Final = b"vllm:prefix_cache_hits_total"
_EXTERNAL_QUERIES: Final = b"vllm:external_prefix_cache_queries_total"
_EXTERNAL_HITS: Final = b"vllm:external_prefix_cache_hits_total"
_STARTED: Final = b"process_start_time_seconds"
_WANTED: Final = frozenset({
    _WAITING, _RUNNING, _USAGE, _USAGE_BEFORE_0_10, _LORAS, _DEVICE, _OFFLOADED, _KVTIER_CPU, _KVTIER_DISK,
    _QUERIES, _HITS, _EXTERNAL_QUERIES, _EXTERNAL_HITS, _STARTED,
})  # fmt: skip
_HEAD: Final = 17
_HEADS: Final = frozenset(name[:_HEAD] for name in _WANTED)
"""Enough of a name to pass over nearly every other line without looking for its end."""
_LABEL: Final = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_MOST: Final = float(1 << 62)
_MOST_REQUESTS: Final = float(1 << 40)
"""More than any engine queues, and few enough that the scheduler can add to them."""
_KEPT_BYTES: Final = 4096


class NotMetricsError(ValueError):
    """The answer is not an engine's metrics; the message says what it is instead, in one line."""


@dataclass(frozen=True, slots=True)
class HitTokens:
    """Tokens asked of the caches and found in them, since an engine's start or since an earlier scrape.

    Attributes:
        queries: Asked of the device's prefix cache: every token of every prompt.
        hits: Of those, found on the device.
        external_queries: Asked of the tiers beyond it.
        external_hits: Of those, found in them.
    """

    queries: float = 0.0
    hits: float = 0.0
    external_queries: float = 0.0
    external_hits: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """One scrape of one pod; its data-parallel engines are added up.

    Attributes:
        waiting: Requests in the queues.
        running: Requests being computed.
        kv_cache_utilization: Used share of the device's KV cache, 0 to 1; the mean of several engines.
        loras: Adapters that are loaded or waited for.
        capacity_tokens: Tokens that each tier can hold, for the tiers that told it.
        hits: Counters since the engine's start.
        model: Name under which the engine reports; empty where it is not told.
        engines: Data-parallel engines behind the pod's one address.
        started_s: When the pod's server started, in seconds since 1970; 0 where it is not told.
    """

    waiting: int
    running: int
    kv_cache_utilization: float
    loras: frozenset[str] = frozenset()
    capacity_tokens: Mapping[Tier, int] = field(default_factory=dict)
    hits: HitTokens = field(default_factory=HitTokens)
    model: str = ""
    engines: int = 1
    started_s: float = 0.0


def engine_metrics(text: bytes) -> EngineMetrics:
    """Reads Prometheus' text format 0.0.4.

    Raises:
        NotMetricsError: It is something else, or not vLLM's, or a number in it is none.
    """
    samples = _samples(text)
    if not samples[_WAITING] or not samples[_RUNNING]:
        raise NotMetricsError(f"no {_WAITING.decode()} in it; it begins with {text[:40]!r}")
    usage = samples[_USAGE] or samples[_USAGE_BEFORE_0_10]
    utilization = _total(usage) / len(usage) if usage else 0.0
    return EngineMetrics(
        waiting=_requests(samples[_WAITING]),
        running=_requests(samples[_RUNNING]),
        kv_cache_utilization=min(1.0, utilization),
        loras=_loras(samples[_LORAS]),
        capacity_tokens=_capacities(samples),
        hits=HitTokens(
            *(_total(samples[name]) for name in (_QUERIES, _HITS, _EXTERNAL_QUERIES, _EXTERNAL_HITS))
        ),
        model=_labels(samples[_RUNNING][0][0]).get("model_name", ""),
        engines=len(samples[_RUNNING]),
        started_s=_total(samples[_STARTED]),
    )


_Samples = Mapping[bytes, list[tuple[bytes, float]]]


def _samples(text: bytes) -> _Samples:
    """Labels and value of every sample that is wanted, by name."""
    found: defaultdict[bytes, list[tuple[bytes, float]]] = defaultdict(list)
    for line in text.split(b"\n"):
        if line[:_HEAD] not in _HEADS:
            continue
        name, brace, rest = line.partition(b"{")
        labels, _, value = rest.rpartition(b"}") if brace else (b"", b"", line)
        if not brace:
            name, _, value = line.partition(b" ")
        if name in _WANTED:
            found[name].append((labels, _number(name, value)))
    return found


def _number(name: bytes, text: bytes) -> float:
    """The value of a sample; a time stamp may follow it."""
    try:
        value = float(text.split()[0])
    except (ValueError, IndexError):
        value = float("nan")
    if not (isfinite(value) and 0.0 <= value <= _MOST):
        raise NotMetricsError(f"{name.decode()} is {text[:40]!r}, not a number of 0 or more")
    return value


def _requests(samples: Iterable[tuple[bytes, float]]) -> int:
    return int(min(_total(samples), _MOST_REQUESTS))


def _total(samples: Iterable[tuple[bytes, float]]) -> float:
    return sum(value for _, value in samples)


def _labels(text: bytes) -> Mapping[str, str]:
    """The labels of a sample; read once, because those of information never change."""
    return _kept_labels(text) if len(text) <= _KEPT_BYTES else _read_labels(text)


def _read_labels(text: bytes) -> Mapping[str, str]:
    return {
        name.decode(): _ESCAPED.sub(_unescape, value.decode(errors="replace"))
        for name, value in _LABEL.findall(text)
    }


_kept_labels: Final = lru_cache(maxsize=8192)(_read_labels)


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _loras(samples: list[tuple[bytes, float]]) -> frozenset[str]:
    """The value is when the labels were true; the newest are (v1/metrics/loggers.py)."""
    if not samples:
        return frozenset()
    labels = _labels(max(samples, key=lambda sample: sample[1])[0])
    names = ",".join(labels.get(f"{state}_lora_adapters", "") for state in ("running", "waiting"))
    return frozenset(name.strip() for name in names.split(",") if name.strip())


def _capacities(samples: _Samples) -> Mapping[Tier, int]:
    cpu = samples.get(_KVTIER_CPU)
    told = {
        Tier.GPU: _device_tokens(samples.get(_DEVICE, ())),
        # kvtier's connector tells in the label what its tier will hold when it has grown.
        Tier.CPU: int(_total(cpu)) if cpu else _sum_of_label(samples.get(_OFFLOADED, ()), _LABEL_OF_CPU),
        Tier.DISK: int(_total(samples.get(_KVTIER_DISK, ()))),
    }
    return {tier: tokens for tier, tokens in told.items() if tokens}


def _device_tokens(samples: Iterable[tuple[bytes, float]]) -> int:
    """kv_cache_size_tokens is of each engine, num_gpu_blocks of all (v1/engine/core_client.py)."""
    samples = tuple(samples)
    told = _sum_of_label(samples, "kv_cache_size_tokens")
    if told or not samples:
        return told
    first = _labels(samples[0][0])
    return _whole(first.get("num_gpu_blocks")) * _whole(first.get("block_size"))


def _sum_of_label(samples: Iterable[tuple[bytes, float]], name: str) -> int:
    """The sum over all engines; 0 where one of them does not tell it."""
    numbers = [_whole(_labels(labels).get(name)) for labels, _ in samples]
    return sum(numbers) if all(numbers) else 0


def _whole(text: str | None) -> int:
    """A label as a whole number of at most 15 digits; 0 where it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 15 else 0  # noqa: PLR2004
