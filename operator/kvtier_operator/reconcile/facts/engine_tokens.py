"""What an engine's metrics say of its tiers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kvtier_operator.planning.observed import EngineFindings, EngineTokens

_DEVICE: Final = "vllm:cache_config_info"
"""vLLM 0.32 and 0.33, v1/metrics/loggers.py; labels are the fields of config/cache.py."""
_OFFLOADED: Final = "vllm:kv_offload_config_info"
"""vLLM 0.33, from its first scheduler step on."""
_KVTIER: Final = "vllm:kvtier_cpu_capacity_tokens"
"""kvtier_connector/vllm/metrics.py, from the first scheduler step on."""
_KVTIER_GROWING: Final = "vllm:kvtier_cpu_growing"
"""1 while the CPU tier is not what it will be."""
_KVTIER_DISK: Final = "vllm:kvtier_disk_capacity_tokens"
"""kvtier_connector/vllm/metrics_disk.py, at the same time."""
_KVTIER_PINNED: Final = "vllm:kvtier_cpu_pinned_bytes"
_KVTIER_DISK_PAYS: Final = "vllm:kvtier_disk_pays"
_TOO_MANY: Final = 1 << 63
"""The status's fields are of 64 bits."""
_READ: Final = (
    _DEVICE, _OFFLOADED, _KVTIER, _KVTIER_GROWING, _KVTIER_DISK, _KVTIER_PINNED, _KVTIER_DISK_PAYS,
)  # fmt: skip


def read_tiers(text: str) -> tuple[EngineTokens, EngineFindings]:
    """Reads one engine pod's /metrics; its data-parallel engines are added up.

    Raises:
        ValueError: It is not Prometheus' text format.
    """
    wanted = [line for line in text.splitlines() if line.startswith(_READ)]
    found: dict[str, list[Sample]] = {name: [] for name in _READ}
    for family in text_string_to_metric_families("\n".join((*wanted, ""))):
        for sample in family.samples:
            found.get(sample.name, []).append(sample)
    return _tokens(found), _findings(found)


def _tokens(found: Mapping[str, Sequence[Sample]]) -> EngineTokens:
    told, told_disk = (_total(found[name]) for name in (_KVTIER, _KVTIER_DISK))
    aimed_at = _sum(each.labels.get("cpu_kv_cache_size_tokens") for each in found[_OFFLOADED])
    cpu = told or None if found[_KVTIER] else aimed_at
    return EngineTokens(
        gpu=_device(found[_DEVICE]), cpu=None if _is_growing(found) else cpu, disk=told_disk or None
    )


def _findings(found: Mapping[str, Sequence[Sample]]) -> EngineFindings:
    pinned, pays = found[_KVTIER_PINNED], found[_KVTIER_DISK_PAYS]
    return EngineFindings(
        pinned_bytes=_total(pinned) if pinned and not _is_growing(found) else None,
        disk_pays=_total(pays) > 0 if pays else None,
    )


def _is_growing(found: Mapping[str, Sequence[Sample]]) -> bool:
    return any(each.value for each in found[_KVTIER_GROWING])


def _total(samples: Iterable[Sample]) -> int:
    """A gauge of all engines.

    Raises:
        ValueError: It is not a number that a status can have.
    """
    total = math.fsum(each.value for each in samples)
    if not 0 <= total < _TOO_MANY:
        raise ValueError(f"{total} is no number of bytes or tokens")
    return int(total)


def _device(samples: Iterable[Sample]) -> int | None:
    labels = [each.labels for each in samples]
    return _sum(each.get("kv_cache_size_tokens") for each in labels) or _of_blocks(labels)


def _of_blocks(labels: Sequence[Mapping[str, str]]) -> int | None:
    """num_gpu_blocks is the sum over all data-parallel engines already (v1/engine/core_client.py)."""
    first = labels[0] if labels else {}
    return math.prod(_known(first.get(name) for name in ("num_gpu_blocks", "block_size")) or (0,)) or None


def _sum(values: Iterable[str | None]) -> int | None:
    return sum(_known(values)) or None


def _known(values: Iterable[str | None]) -> list[int]:
    """All of them, or none where one is not known."""
    texts = [value or "" for value in values]
    return [int(text) for text in texts] if all(map(_is_number, texts)) else []


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < _TOO_MANY  # noqa: PLR2004
