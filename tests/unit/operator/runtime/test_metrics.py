import pytest

from kvtier_common.tier import Tier
from kvtier_operator.runtime.metrics import EngineMetrics, parse_metrics

# As vLLM 0.32 prints it, with two data-parallel engines and other metrics left out.
TEXT = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 1.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.79e+09
# TYPE vllm:prompt_tokens_cached_by_source_total counter
vllm:prompt_tokens_cached_by_source_total{engine="0",source="device"} 320.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="host"} 400.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="p2p"} 7.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="external_unspecified"} 30.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 4.0
vllm:time_to_first_token_seconds_count{engine="0"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0"} 6.0
# TYPE vllm:kvtier_cpu_cached_tokens gauge
vllm:kvtier_cpu_cached_tokens{engine="0"} 4704.0
# TYPE vllm:kvtier_disk_cached_tokens gauge
vllm:kvtier_disk_cached_tokens{engine="0"} 9408.0
vllm:kvtier_disk_cached_tokens{engine="1"} 32.0
# TYPE vllm:kvtier_remote_cached_tokens gauge
vllm:kvtier_remote_cached_tokens{engine="0"} 64.0
vllm:kvtier_remote_cached_tokens{engine="1"} 64.0
"""


def test_what_vllm_counts() -> None:
    metrics = parse_metrics(TEXT)
    assert metrics.running_requests == 3
    assert metrics.cached_tokens == {"device": 320, "cpu": 400, "disk": 0, "remote": 30}
    assert metrics.hit_rate == 0.75
    assert metrics.mean_ttft_s == 1.5
    assert metrics.held_tokens == {Tier.CPU: 4704, Tier.DISK: 9440, Tier.REMOTE: 64}


def test_an_engine_that_has_done_nothing() -> None:
    metrics = parse_metrics("")
    assert metrics == EngineMetrics(cached_tokens={"device": 0, "cpu": 0, "disk": 0, "remote": 0})
    assert metrics.hit_rate is None
    assert metrics.mean_ttft_s is None


def test_what_one_query_added() -> None:
    before = EngineMetrics(
        prompt_tokens=900, cached_tokens={"device": 320, "cpu": 300, "remote": 30}, ttft_s=5.0, ttft_count=3
    )
    added = parse_metrics(TEXT).since(before)
    assert added.prompt_tokens == 100
    assert added.held_tokens == {Tier.CPU: 4704, Tier.DISK: 9440, Tier.REMOTE: 64}
    assert added.cached_tokens == {"device": 0, "cpu": 100, "disk": 0, "remote": 0}
    assert added.mean_ttft_s == 1.0


def test_text_of_something_else() -> None:
    with pytest.raises(ValueError, match="not vLLM's metrics"):
        parse_metrics("<html>not metrics</html>")
