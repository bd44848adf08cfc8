"""Time to first token from the tier in memory; on a GPU beside vLLM's own tier and none, in turns."""

from typing import Any

from kvtier_connector.bench.parts.ttft.on_cpu import bench_ttft
from kvtier_connector.bench.parts.ttft.on_gpu import compare_ttft
from kvtier_connector.bench.parts.ttft.rows import rows
from kvtier_connector.bench.run import Run
from kvtier_connector.bench.sides.comparison import Comparison

__all__ = ["measure", "rows"]


def measure(run: Run) -> dict[str, Any]:
    """Measure it on what vLLM computes on."""
    log = run.log("ttft")
    if run.gpu:
        return compare_ttft(
            Comparison.of(run),
            prompt_tokens=run.prompt_tokens,
            repeats=run.repeats,
            log=log,
            say=run.say,
        )
    return bench_ttft(
        run.weights(),
        prompt_tokens=run.prompt_tokens,
        repeats=run.repeats,
        log=log,
        say=run.say,
        given=run.given,
    )
