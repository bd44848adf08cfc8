"""What engines say of themselves as figures: load, capacities, confirmed hits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kvtier_common.metrics.text import read_families
from kvtier_common.tier import Tier
from kvtier_scorer.picker.engines.engine_metrics import (
    WANTED,
    EngineMetrics,
    NotMetricsError,
    increase,
    most_entries,
    new_entries,
)
from kvtier_scorer.picker.engines.engine_metrics import engine_metrics as figures
from kvtier_scorer.picker.engines.scraper import (
    SCRAPE_S,
    SHARE,
    after_failures_s,
    interval_s,
)
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


TOKENS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        (16_000, {}),
        (16_800, {}),
        (16_801, {Tier.CPU: 1051}),
        (15_200, {}),
        (15_184, {Tier.CPU: 949}),
        (8_001, {Tier.CPU: 501}),
        (10**15, {Tier.CPU: 2000}),
    ],
)
def test_a_capacity_follows_where_it_is_clearly_another(told: int, changed: dict[Tier, int]) -> None:
    assert new_entries({Tier.CPU: 1000}, {Tier.CPU: told}, 16, {Tier.CPU: 2000}) == changed


def test_a_tier_without_an_index_gets_none_and_one_that_is_not_told_stays() -> None:
    there = {Tier.GPU: 1000, Tier.CPU: 7}
    told = {Tier.DISK: 10**9, Tier.CPU: 1600}
    assert new_entries(there, told, 16, dict.fromkeys(there, 5000)) == {Tier.CPU: 100}


def test_a_pod_is_believed_twice_what_was_planned_and_where_nothing_was_what_no_device_exceeds() -> None:
    assert most_entries({Tier.CPU: 1000, Tier.GPU: None}) == {Tier.CPU: 2000, Tier.GPU: 1 << 20}


@given(TOKENS, TOKENS, st.integers(1, 512))
def test_once_followed_it_stays(entries: int, tokens: int, block: int) -> None:
    most = most_entries({Tier.GPU: None})
    changed = new_entries({Tier.GPU: entries}, {Tier.GPU: tokens}, block, most)
    assert not new_entries({Tier.GPU: entries} | dict(changed), {Tier.GPU: tokens}, block, most)


def test_hits_are_what_the_counters_grew_by_and_all_of_them_after_a_restart() -> None:
    before = HitTokens(100, 50, 50, 20)
    assert increase(before, HitTokens(130, 60, 70, 30)) == HitTokens(30, 10, 20, 10)
    assert increase(before, HitTokens(10, 60, 5, 1)) == HitTokens(10, 60, 5, 1)


def test_many_pods_are_scraped_less_often() -> None:
    assert interval_s(0.1, 0) == interval_s(0.1, 80) == 0.1
    assert interval_s(0.1, 1000) == pytest.approx(1.2)


@given(st.floats(0.05, 0.2), st.integers(0, 10_000))
def test_scraping_never_takes_more_than_its_share(wanted: float, pods: int) -> None:
    assert pods * SCRAPE_S / interval_s(wanted, pods) <= SHARE * 1.0001


def test_what_is_no_engine_is_asked_less_and_less_often() -> None:
    assert [after_failures_s(0.1, failures) for failures in (0, 1, 2, 3, 99)] == [0.1, 0.2, 0.4, 0.8, 5.0]
    assert after_failures_s(7.0, 99) == 7.0
