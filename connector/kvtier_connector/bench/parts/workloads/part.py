"""The llm-d guide's workloads: on a GPU beside vLLM's own tier and none, on a CPU beside none."""

from typing import Any

from kvtier_connector.bench.parts.workloads.on_cpu import bench_workloads
from kvtier_connector.bench.parts.workloads.on_gpu import compare_workloads
from kvtier_connector.bench.parts.workloads.rows import rows
from kvtier_connector.bench.run import Run
from kvtier_connector.bench.sides.comparison import Comparison

__all__ = ["measure", "rows"]


def measure(run: Run) -> dict[str, Any]:
    """Measure them on what vLLM computes on."""
    log = run.log("workloads")
    if run.gpu:
        return compare_workloads(Comparison.of(run), log=log, say=run.say)
    return bench_workloads(run.weights(), log=log, say=run.say, given=run.given)
