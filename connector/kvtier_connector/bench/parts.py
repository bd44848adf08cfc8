"""What measures each part of `kvtier bench connector`, and with which options."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from kvtier_connector.bench.disk import bench_disk
from kvtier_connector.bench.given import Given
from kvtier_connector.bench.growth import bench_growth
from kvtier_connector.bench.hit_rate.compare import bench_hit_rate
from kvtier_connector.bench.index import bench_index
from kvtier_connector.bench.model import write_bench_config, write_bench_model
from kvtier_connector.bench.overhead import bench_overhead
from kvtier_connector.bench.part_names import GPU
from kvtier_connector.bench.region import bench_region
from kvtier_connector.bench.sides.comparison import Comparison
from kvtier_connector.bench.sides.ttft import compare_ttft
from kvtier_connector.bench.sides.workloads import compare_workloads
from kvtier_connector.bench.ttft import TIER, bench_ttft
from kvtier_connector.bench.ttft_disk import bench_ttft_disk
from kvtier_connector.bench.workloads.compare import bench_workloads

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a device that is not the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to measure.

    Args:
        model: folder of a model with weights; None for random ones.
        shape: sizes of the model with random weights.
        scratch: folder for that model.
        out: file of the report, beside which logs are.
        folder: on the disk to be measured.
        prompt_tokens: prompt length of ttft and ttft_disk.
        repeats: prompts of ttft and ttft_disk.
        pairs: pairs of prompts of overhead.
        rounds: rounds of disk.
        gpu: the GPU's name; empty where vLLM computes on the CPU.
        sides: what ttft and workloads compare on a GPU.
        turns: lives of each of them.
        given: vLLM's arguments for the engines of ttft and workloads.
    """

    model: Path | None
    shape: str
    scratch: Path
    out: Path
    folder: Path
    prompt_tokens: int
    repeats: int
    pairs: int
    rounds: int
    gpu: str
    sides: tuple[str, ...]
    turns: int
    given: Given


def parts(options: Options, say: Callable[[str], None]) -> dict[str, Callable[[], Any]]:
    """Return what measures each part; models are written when the first part needs one.

    Args:
        options: how to measure.
        say: is told how far a part is.
    """

    def log(part: str) -> Path:
        return options.out.parent / f"connector-{part}.log"

    @cache
    def weights() -> Path:
        return options.model or write_bench_model(options.scratch / "weights", options.shape)

    return {
        "index": bench_index,
        "hit_rate": bench_hit_rate,
        "region": bench_region,
        "disk": lambda: bench_disk(options.folder, log=log("disk"), say=say, rounds=options.rounds),
        "disk_memory": lambda: bench_disk(
            _MEMORY,
            log=log("disk-memory"),
            say=say,
            rounds=options.rounds,
            kept_bytes=256 << 20,
            sample_bytes=128 << 20,
        ),
        "ttft_disk": lambda: bench_ttft_disk(
            weights(),
            prompt_tokens=options.prompt_tokens,
            prompts=options.repeats,
            folder=options.folder,
            log=log("ttft-disk"),
            say=say,
        ),
        "overhead": lambda: bench_overhead(
            weights(), TIER, pairs=options.pairs, log=log("overhead"), say=say
        ),
        "growth": lambda: bench_growth(weights(), log=log("growth"), say=say),
        "never_slower": lambda: _never_slower(options.folder, say),
        GPU: _copies,
        **(_on_a_gpu if options.gpu else _on_a_cpu)(options, weights, log, say),
    }


def _never_slower(folder: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    from kvtier_connector.bench.never_slower.compare import (  # noqa: PLC0415 - loads vLLM
        bench_never_slower,
    )

    return bench_never_slower(folder=folder, say=say)


def _copies() -> list[dict[str, Any]]:
    from kvtier_connector.bench.gpu import bench_gpu  # noqa: PLC0415 - loads torch

    return bench_gpu()


def _on_a_cpu(
    options: Options, weights: Callable[[], Path], log: Callable[[str], Path], say: Callable[[str], None]
) -> dict[str, Callable[[], Any]]:
    return {
        "ttft": lambda: bench_ttft(
            weights(),
            prompt_tokens=options.prompt_tokens,
            repeats=options.repeats,
            log=log("ttft"),
            say=say,
            given=options.given,
        ),
        "workloads": lambda: bench_workloads(weights(), log=log("workloads"), say=say, given=options.given),
    }


def _on_a_gpu(
    options: Options, weights: Callable[[], Path], log: Callable[[str], Path], say: Callable[[str], None]
) -> dict[str, Callable[[], Any]]:
    del weights

    @cache
    def comparison() -> Comparison:
        drawn = options.model is None
        model = options.model or write_bench_config(options.scratch / "config", options.shape)
        return Comparison(
            model=model,
            drawn=drawn,
            sides=options.sides,
            turns=options.turns,
            given=options.given,
            device=options.gpu,
        )

    return {
        "ttft": lambda: compare_ttft(
            comparison(),
            prompt_tokens=options.prompt_tokens,
            repeats=options.repeats,
            log=log("ttft"),
            say=say,
        ),
        "workloads": lambda: compare_workloads(comparison(), log=log("workloads"), say=say),
    }
