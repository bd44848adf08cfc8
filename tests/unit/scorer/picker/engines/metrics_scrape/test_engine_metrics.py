"""What is read from an engine's metrics, and that nothing else passes for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kvtier_common.metrics.text import read_families
from kvtier_common.tier import Tier
from kvtier_scorer.picker.engines.engine_metrics import WANTED, EngineMetrics, NotMetricsError
from kvtier_scorer.picker.engines.engine_metrics import engine_metrics as figures
from kvtier_scorer.picker.observability.counters import HitTokens

LOAD = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-32B"} 3.0
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-32B"} 2.0
"""
OFFLOADED = b'vllm:kv_offload_config_info{cpu_kv_cache_size_tokens="%s",engine="%d"} 1.0\n'
DEVICE = (
    b'vllm:cache_config_info{block_size="16",engine="%d",kv_cache_size_tokens="%s",num_gpu_blocks="%s"} 1.0\n'
)


def engine_metrics(text: bytes) -> EngineMetrics:
    return figures(read_families(text, WANTED))


def exposition(engines: int) -> bytes:
    """Metrics with vLLM's names and labels, as its own library writes them."""
    registry = CollectorRegistry()
    names = ("engine", "model_name")
    gauges = {
        "vllm:num_requests_running": 3,
        "vllm:num_requests_waiting": 2,
        "vllm:num_requests_waiting_by_reason": 99,
        "vllm:kv_cache_usage_perc": 0.25,
        "vllm:kvtier_cpu_capacity_tokens": 409_600,
        "vllm:kvtier_cpu_cached_tokens": 77,
        "vllm:kvtier_disk_capacity_tokens": 4_000_000,
        "vllm:kvtier_disk_capacity_bytes": 5e12,
    }
    counters = {
        "vllm:prefix_cache_queries": 1e6,
        "vllm:prefix_cache_hits": 3e5,
        "vllm:external_prefix_cache_queries": 7e5,
        "vllm:external_prefix_cache_hits": 1.5e5,
    }
    for name, value in gauges.items():
        gauge = Gauge(name, "With } and { in its help.", names, registry=registry)
        for engine in range(engines):
            gauge.labels(str(engine), 'odd "name" with } and \\ in it').set(value)
    for name, value in counters.items():
        counter = Counter(name, "Tokens.", names, registry=registry)
        for engine in range(engines):
            counter.labels(str(engine), 'odd "name" with } and \\ in it').inc(value)
    loras = Gauge(
        "vllm:lora_requests_info",
        "x",
        ("max_lora", "waiting_lora_adapters", "running_lora_adapters"),
        registry=registry,
    )
    loras.labels("4", "", "old").set(1_700_000_000)
    loras.labels("4", "c", "a,b").set(1_700_000_001)
    Histogram("vllm:time_to_first_token_seconds", "x", registry=registry).observe(0.2)
    Gauge("process_start_time_seconds", "x", registry=registry).set(1_700_000_000.5)
    return generate_latest(registry)


@pytest.mark.parametrize("engines", [1, 2, 8])
def test_what_the_engines_of_a_pod_say_is_added_up(engines: int) -> None:
    assert engine_metrics(exposition(engines)) == EngineMetrics(
        waiting=2 * engines,
        running=3 * engines,
        kv_cache_utilization=0.25,
        loras=frozenset("abc"),
        capacity_tokens={Tier.CPU: 409_600 * engines, Tier.DISK: 4_000_000 * engines},
        hits=HitTokens(1e6 * engines, 3e5 * engines, 7e5 * engines, 1.5e5 * engines),
        model='odd "name" with } and \\ in it',
        engines=engines,
        started_s=1_700_000_000.5,
    )


@pytest.mark.parametrize(
    ("text", "capacity"),
    [
        (b"", {}),
        (DEVICE % (0, b"1600", b"101"), {Tier.GPU: 1600}),
        (DEVICE % (0, b"1600", b"202") + DEVICE % (1, b"1584", b"202"), {Tier.GPU: 3184}),
        (DEVICE % (0, b"None", b"202") + DEVICE % (1, b"None", b"202"), {Tier.GPU: 3232}),
        (DEVICE % (0, b"None", b"None"), {}),
        (OFFLOADED % (b"4096", 0), {Tier.CPU: 4096}),
        (OFFLOADED % (b"4096", 0) + OFFLOADED % (b"4096", 1), {Tier.CPU: 8192}),
        (OFFLOADED % (b"4096", 0) + OFFLOADED % (b"", 1), {}),
        (
            OFFLOADED % (b"4096", 0) + b'vllm:kvtier_cpu_capacity_tokens{engine="0"} 2.048e+03\n',
            {Tier.CPU: 2048},
        ),
        (OFFLOADED % (b"4096", 0) + b'vllm:kvtier_cpu_capacity_tokens{engine="0"} 0.0\n', {}),
        (b'vllm:kvtier_disk_capacity_tokens{engine="0"} 0.0\n', {}),
        (OFFLOADED % (b"9" * 400, 0), {}),
        *(
            (b'vllm:kvtier_cpu_capacity_tokens{engine="0"} %b\n' % wrong, {})
            for wrong in (b"1e300", b"+Inf", b"NaN", b"-1")
        ),
    ],
)
def test_capacities_are_those_that_are_told(text: bytes, capacity: dict[Tier, int]) -> None:
    assert engine_metrics(LOAD + text).capacity_tokens == capacity


def test_names_of_older_engines_and_time_stamps_are_understood() -> None:
    text = LOAD + b'vllm:gpu_cache_usage_perc{model_name="m"} 0.5 1700000000000\n'
    assert engine_metrics(text).kv_cache_utilization == 0.5


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html><body>It works!</body></html>",
        bytes(range(256)) * 100,
        b"up 1\n",
        b'vllm:num_requests_running{engine="0"} 1\n',
        LOAD.replace(b"3.0", b"NaN"),
        LOAD.replace(b"3.0", b"+Inf"),
        LOAD.replace(b"3.0", b"-1"),
        LOAD.replace(b"3.0", b"1e300"),
        LOAD.replace(b"3.0", b"many"),
        LOAD.replace(b"3.0", b""),
        LOAD + b'vllm:kv_cache_usage_perc{engine="0"\n',
    ],
)
def test_what_is_no_engine_s_metrics_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(NotMetricsError) as refusal:
        engine_metrics(text)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


@given(st.binary(max_size=400), st.integers(0, 400), st.integers(0, 400))
def test_mutated_metrics_are_read_or_refused(garbage: bytes, first: int, last: int) -> None:
    text = LOAD + DEVICE % (0, b"1600", b"101")
    try:
        metrics = engine_metrics(text[:first] + garbage + text[last:])
    except NotMetricsError:
        return
    assert metrics.waiting >= 0
    assert metrics.running >= 0
    assert 0 <= metrics.kv_cache_utilization <= 1
