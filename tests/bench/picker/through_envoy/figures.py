"""From rounds to the figures of one size: medians, with how far the rounds lie apart."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.bench.picker.through_envoy.load import Load
from tests.bench.picker.through_envoy.rounds import Turn
from tests.bench.picker.through_envoy.shapes import Shape

_MS: Final = 1e3
_US: Final = 1e6


def row(shape: Shape, measured: Mapping[str, Sequence[Turn]]) -> dict[str, Any]:
    """The figures of one size.

    Args:
        shape: The size.
        measured: Turns by side.

    Returns:
        `pods`, `prompt_tokens` and, for each side, medians over rounds: `{side}_rps`, `{side}_p50_ms`,
        `{side}_p99_ms`, and processor time a request, which other work on the machine changes less:
        `{side}_picker_cpu_us`, `{side}_load_cpu_us`; the lowest and highest of all turns as
        `{side}_rps_range` and `{side}_p99_ms_range`; and all answers that were not 200 as `{side}_refused`.
    """
    found: dict[str, Any] = {"pods": shape.pods, "prompt_tokens": shape.prompt_tokens}
    for side, turns in measured.items():
        loads = [turn.load for turn in turns]
        rps = [load.rps for load in loads]
        p99_ms = [_MS * load.quantile_s(0.99) for load in loads]
        found |= {
            f"{side}_rps": round(statistics.median(rps), 1),
            f"{side}_p50_ms": round(statistics.median(_MS * load.quantile_s(0.5) for load in loads), 3),
            f"{side}_p99_ms": round(statistics.median(p99_ms), 3),
            f"{side}_picker_cpu_us": _each_us([turn.picker_cpu_s for turn in turns], loads),
            f"{side}_load_cpu_us": _each_us([turn.load_cpu_s for turn in turns], loads),
            f"{side}_rps_range": [round(min(rps), 1), round(max(rps), 1)],
            f"{side}_p99_ms_range": [round(min(p99_ms), 3), round(max(p99_ms), 3)],
            f"{side}_refused": sum(load.refused for load in loads),
        }
    return found


def _each_us(cpu_s: Sequence[float], loads: Sequence[Load]) -> float:
    """Processor time a request, the median of turns; answers that were refused cost some too."""
    return round(
        statistics.median(
            _US * spent_s / max(1, len(load.latencies_s) + load.refused)
            for spent_s, load in zip(cpu_s, loads, strict=True)
        ),
        1,
    )
