"""What an engine's metrics say of its tiers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kvtier_common.metrics.text import Families, Sample, read_labels
from kvtier_common.metrics.tier_metrics import (
    CAPACITY_TOKENS,
    CPU_GROWING,
    CPU_PINNED_BYTES,
    DEVICE,
    DEVICE_BLOCK,
    DEVICE_BLOCKS,
    DEVICE_TOKENS,
    DISK_PAYS,
    OFFLOADED,
    OFFLOADED_TOKENS,
)
from kvtier_common.tier import Tier
from kvtier_operator.planning.observed import EngineFindings, EngineTokens

_TOO_MANY: Final = 1 << 63
"""The status's fields are of 64 bits."""
READ: Final = (
    DEVICE, OFFLOADED, *CAPACITY_TOKENS.values(), CPU_GROWING, CPU_PINNED_BYTES, DISK_PAYS,
)  # fmt: skip
"""Names of the samples of which something is read."""


def read_tiers(found: Families) -> tuple[EngineTokens, EngineFindings]:
    """What one engine pod's /metrics say; its data-parallel engines are added up.

    Raises:
        ValueError: A number in it is none that a tier can have.
    """
    if found.unreadable:
        names = ", ".join(sorted(name.decode() for name in found.unreadable))
        raise ValueError(f"{names}: no number of bytes or tokens")
    return _tokens(found), _findings(found)


def _tokens(found: Families) -> EngineTokens:
    by_tier = {Tier.GPU: _device(found.of(DEVICE))}
    by_tier |= {tier: _total(found, name) for tier, name in CAPACITY_TOKENS.items()}
    if not found.of(CAPACITY_TOKENS[Tier.CPU]):
        by_tier[Tier.CPU] = _sum(labels.get(OFFLOADED_TOKENS) for labels in _labels(found.of(OFFLOADED)))
    if _is_growing(found):
        by_tier[Tier.CPU] = None
    return EngineTokens(
        {tier: tokens for tier, tokens in by_tier.items() if tokens},
        block=_block(found.of(DEVICE)),
        gpu_blocks=_blocks(found.of(DEVICE)),
    )


def _findings(found: Families) -> EngineFindings:
    return EngineFindings(
        pinned_bytes=_total(found, CPU_PINNED_BYTES)
        if found.of(CPU_PINNED_BYTES) and not _is_growing(found)
        else None,
        disk_pays=_total(found, DISK_PAYS) > 0 if found.of(DISK_PAYS) else None,
    )


def _is_growing(found: Families) -> bool:
    return found.total(CPU_GROWING) > 0


def _total(found: Families, name: bytes) -> int:
    """A gauge of all engines.

    Raises:
        ValueError: It is not a number that a status can have.
    """
    total = found.total(name)
    if total >= _TOO_MANY:
        raise ValueError(f"{name.decode()}: {total} is no number of bytes or tokens")
    return int(total)


def _labels(samples: Iterable[Sample]) -> list[Mapping[str, str]]:
    return [read_labels(labels) for labels, _ in samples]


def _device(samples: Iterable[Sample]) -> int | None:
    labels = _labels(samples)
    return _sum(each.get(DEVICE_TOKENS) for each in labels) or _of_blocks(labels)


def _block(samples: Iterable[Sample]) -> int | None:
    return next(iter(_known(labels.get(DEVICE_BLOCK) for labels in _labels(samples))), None)


def _blocks(samples: Iterable[Sample]) -> int | None:
    labels = next(iter(_labels(samples)), {})
    return next(iter(_known([labels.get(DEVICE_BLOCKS[0])])), None)


def _of_blocks(labels: Sequence[Mapping[str, str]]) -> int | None:
    first = labels[0] if labels else {}
    return math.prod(_known(first.get(name) for name in DEVICE_BLOCKS) or (0,)) or None


def _sum(values: Iterable[str | None]) -> int | None:
    return sum(_known(values)) or None


def _known(values: Iterable[str | None]) -> list[int]:
    """All of them, or none where one is not known."""
    texts = [value or "" for value in values]
    return [int(text) for text in texts] if all(map(_is_number, texts)) else []


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < _TOO_MANY  # noqa: PLR2004
