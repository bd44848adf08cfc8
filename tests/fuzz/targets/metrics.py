"""An engine's /metrics as the picker reads them."""

from contextlib import suppress
from typing import Final

from kvtier_common.metrics.text import MetricsTextError, read_families
from kvtier_scorer.picker.engines.engine_metrics import WANTED, NotMetricsError, engine_metrics

_GAUGES: Final = rb"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a\"b\\\n"} 3.0
vllm:num_requests_waiting{engine="0"} 1e2 1700000000
vllm:kv_cache_usage_perc{engine="0"} 0.5
"""
SEEDS: Final = [
    _GAUGES,
    b'vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1.0\n',
    b'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters=""} 1.7e9\n',
    b"vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n",
]


def run(data: bytes) -> None:
    """Figures, or the error that says why not."""
    with suppress(NotMetricsError, MetricsTextError):
        engine_metrics(read_families(data, WANTED))
