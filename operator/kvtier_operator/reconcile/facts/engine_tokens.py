"""What an engine's metrics say of the sizes of its tiers."""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kvtier_operator.planning.observed import EngineTokens

_DEVICE: Final = "vllm:cache_config_info"
"""vLLM 0.32 and 0.33, v1/metrics/loggers.py; labels are the fields of config/cache.py."""
_OFFLOADED: Final = "vllm:kv_offload_config_info"
"""vLLM 0.33, from its first scheduler step on."""
_KVTIER: Final = "vllm:kvtier_cpu_capacity_tokens"
"""kvtier_connector/vllm/metrics.py, from the first scheduler step on."""


def engine_tokens(text: str) -> EngineTokens:
    """Reads one engine pod's /metrics; its data-parallel engines are added up.

    Raises:
        ValueError: It is not Prometheus' text format.
    """
    wanted = [line for line in text.splitlines() if line.startswith((_DEVICE, _OFFLOADED, _KVTIER))]
    found: dict[str, list[Sample]] = {_DEVICE: [], _OFFLOADED: [], _KVTIER: []}
    for family in text_string_to_metric_families("\n".join((*wanted, ""))):
        for sample in family.samples:
            found.get(sample.name, []).append(sample)
    told = sum(int(each.value) for each in found[_KVTIER])
    return EngineTokens(
        gpu=_device(found[_DEVICE]),
        cpu=told or _sum(each.labels.get("cpu_kv_cache_size_tokens") for each in found[_OFFLOADED]),
    )


def _device(samples: Iterable[Sample]) -> int | None:
    labels = [each.labels for each in samples]
    return _sum(each.get("kv_cache_size_tokens") for each in labels) or _of_blocks(labels)


def _of_blocks(labels: list[dict[str, str]]) -> int | None:
    """num_gpu_blocks is the sum over all data-parallel engines already (v1/engine/core_client.py)."""
    return _product(labels[0], "num_gpu_blocks", "block_size") if labels else None


def _product(labels: Mapping[str, str], *names: str) -> int | None:
    product = 1
    for name in names:
        value = labels.get(name, "")
        if not value.isdecimal():
            return None
        product *= int(value)
    return product or None


def _sum(values: Iterable[str | None]) -> int | None:
    """None where one of them is not known, or nothing."""
    total = 0
    for value in values:
        if value is None or not value.isdecimal():
            return None
        total += int(value)
    return total or None
