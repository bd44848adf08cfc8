"""Workloads of shared system prompts on a CPU, with the tier and with the device cache alone, in one engine.

High cache: the system prompts are more than the device cache holds. Low cache: it holds them, and all that
a tier can do is cost little. Both have the shape of a published benchmark; `Scaling` says how it was made
smaller. As there, a constant number of requests is under way, and a round begins with prompts that no cache
can have.

What is not as there: on a CPU a prompt takes far longer to compute than its KV cache to copy, and longer
beside its answer, than on the published benchmark's GPUs. So for each prompt that the tier saves, it gains
more here than it would there. How many those are does not depend on that: it is in the hit rates.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

from tests.bench.connector import switched_engine
from tests.bench.connector.switched_engine import EMPTY, SWITCH

from kvtier_common.benchmarks import Workload
from kvtier_common.formats.json_text import json_file
from kvtier_connector.bench.engine import BenchEngine, bench_engine
from kvtier_connector.bench.load import IN_BLOCKS, Round, RoundServed, Scaling, ask_round, kv_bytes_per_token
from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS, ServeOptions
from kvtier_connector.bench.workloads import (
    compare,
    heading,
    over_caches,
    over_rounds,
    percent,
    requests_differing,
    round_figures,
    side_figures,
)
from kvtier_connector.config import MIB, ConnectorConfig, kv_transfer_config

_SHOWN: Final = {"mean_ttft_s": "mean TTFT", "total_tokens_per_s": "throughput"}
IN_GB: Final = Scaling(device_cache_tokens=121_500, tier_cache_tokens=500_000)
"""Caches as the guide counts them ("Memory Calculation"): 24.3 GB and 100 GB an engine, of 0.0002 GB a token.
The system prompts are 1.39 times the device cache. That does not follow from the number of blocks; but one
engine has all requests of a group, where the guide's had some each, which also asks more of a device cache.
"""

_LATENCIES_AND_THROUGHPUT: Final = (
    "mean_ttft_s",
    "p90_ttft_s",
    "mean_e2e_s",
    "p90_e2e_s",
    "total_tokens_per_s",
)

_GUIDE: Final = {
    "high_cache": {
        "baseline": (9.0, 20.9, 37.8, 49.7, 38534.8),
        "vllm_offloading": (6.7, 20.2, 30.9, 44.2, 46751.0),
        "lmcache": (6.5, 18.8, 30.8, 43.0, 46910.6),
    },
    "low_cache": {
        "baseline": (0.12, 0.09, 18.4, 19.6, 23389.6),
        "vllm_offloading": (0.13, 0.11, 18.6, 20.6, 23032.6),
        "lmcache": (0.15, 0.10, 18.9, 19.6, 22772.5),
    },
}

"""llm-d 0.4.0, guides/tiered-prefix-cache/cpu/README.md: Qwen3-32B on 16 H100, one run of each."""


_WORKLOADS: Final = {
    "high_cache": "high-cache workload",
    "high_cache_in_gb": "high-cache workload, caches as llm-d counts them in GB",
    "low_cache": "low-cache workload",
}


_OF_A_REQUEST: Final = {
    "request_ttft_s": "TTFT of the median request over its own",
    "request_e2e_s": "end to end of the median request over its own",
}


_LIMITS: Final = {
    "high_cache": {"mean_ttft_s": "below -27.8 %", "total_tokens_per_s": "above +21.7 %"},
    "high_cache_in_gb": {},
    "low_cache": {"mean_ttft_s": "within 0.5 %", "total_tokens_per_s": "within 0.5 %"},
}

ROUNDS: Final = MappingProxyType({"high_cache": 4, "high_cache_in_gb": 3, "low_cache": 6})
"""Of each workload, on each side: some minutes in all on a quiet machine."""
_BLOCK_TOKENS: Final = 32
"""The smallest block that vLLM's CPU attention likes (platforms/cpu.py); vLLM's own, on CUDA, has 16."""
_DTYPE: Final = "float32"
"""In bfloat16 a prompt rounds differently when it is computed in other pieces, and answers may differ."""
_ELEMENT_BYTES: Final = 4
_WARM_UP: Final = Workload(
    groups=1,
    prompts_per_group=2,
    system_tokens=2 * _BLOCK_TOKENS,
    question_tokens=1,
    output_tokens=2,
    concurrency=1,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """One part of the report: a workload and the caches it meets."""

    name: str
    guide_name: str
    scaling: Scaling
    workload: Workload


def bench_workloads(  # noqa: PLR0913 - what a run is made of
    model: Path,
    *,
    log: Path,
    say: Callable[[str], None],
    rounds: Mapping[str, int] = ROUNDS,
    divisor: int = IN_BLOCKS.divisor,
    serve_options: ServeOptions = NO_SERVE_OPTIONS,
) -> dict[str, Any]:
    """Measure rounds with the tier and rounds without it, taking turns.

    An engine runs each round with its connector and with it taken out, in alternating order. For the
    low-cache workload a second engine takes turns with it, whose connector does nothing: that shows what
    vLLM takes for any connector. All compute on one core, and each waits until the other is at rest.

    Args:
        model: the model's folder; all its layers have full attention.
        log: files for the engines' output; each adds its suffix.
        say: is told how far it is.
        rounds: of each workload on each side; what has none is left out.
        divisor: of all lengths and caches; a larger one makes a smaller benchmark.
        serve_options: arguments for both engines; a tier among them stands for the scaled one.

    Returns:
        For each workload its shape, each side's figures, their ratios, the guide's, and whether all sides
        answered the same tokens. `high_cache` and `low_cache` have the guide's caches as it gives them in
        blocks, `high_cache_in_gb` as it counts them in GB.

    Raises:
        ConnectorError: an engine died.
    """
    blocks, gb = (replace(each, divisor=divisor) for each in (IN_BLOCKS, IN_GB))
    token_bytes = kv_bytes_per_token(json_file(model / "config.json"), _ELEMENT_BYTES)
    sections = {
        section.name: section
        for section in (
            _Section("high_cache", "high_cache", blocks, blocks.high_cache()),
            _Section("high_cache_in_gb", "high_cache", gb, gb.high_cache()),
            _Section("low_cache", "low_cache", blocks, blocks.low_cache()),
        )
    }
    report = {}
    for name, section in sections.items():
        if not rounds.get(name):
            continue
        with ExitStack() as running:
            transfers = {"kvtier": dict(serve_options.transfer or _tier(section.scaling, token_bytes))}
            if name == "low_cache":
                transfers["empty"] = EMPTY
            engines = {
                connector: running.enter_context(
                    _engine(
                        model,
                        section.scaling,
                        transfer,
                        serve_options,
                        log.with_suffix(f".{name}.{connector}.log"),
                    )
                )
                for connector, transfer in transfers.items()
            }
            report[name] = _measure(section, engines, rounds[name], token_bytes, say)
    return report


def _tier(scaling: Scaling, token_bytes: int) -> dict[str, Any]:
    capacity = math.ceil(scaling.tier_tokens() * token_bytes / MIB) * MIB
    return kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=capacity))


@contextmanager
def _engine(
    model: Path, scaling: Scaling, transfer: dict[str, Any], serve_options: ServeOptions, log: Path
) -> Iterator[BenchEngine]:
    longest = scaling.high_cache()
    settings = {
        "model": str(model),
        "dtype": _DTYPE,
        "block_size": _BLOCK_TOKENS,
        "max_model_len": longest.prompt_tokens + longest.output_tokens,
        "max_num_seqs": longest.concurrency,
        "max_num_batched_tokens": scaling.step_limit_tokens(),
        # vLLM keeps one block to itself.
        "num_gpu_blocks_override": math.ceil(scaling.device_tokens() / _BLOCK_TOKENS) + 1,
        "kv_transfer_config": transfer,
        "disable_log_stats": False,
        **SWITCH,
    }
    core = str(max(os.sched_getaffinity(0)))
    with bench_engine(
        settings, log=log, serve_options=serve_options, cores=core, module=switched_engine.__name__
    ) as engine:
        ask_round(engine, Round(_WARM_UP, seed="warm-up"), connected=True)
        engine.rest()
        yield engine


def _measure(
    section: _Section,
    engines: Mapping[str, BenchEngine],
    rounds: int,
    token_bytes: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    found: dict[tuple[str, bool], list[RoundServed]] = {
        (engine, connected): [] for engine in engines for connected in (True, False)
    }
    differing = 0
    for number in range(rounds):
        answers: list[list[list[int]]] = []
        for name, engine in engines.items():
            for connected in (True, False) if number % 2 else (False, True):
                asked = Round(section.workload, seed=f"{section.name} {number}")
                answer = ask_round(engine, asked, connected=connected)
                engine.rest()
                found[name, connected].append(answer)
                answers.append([request.tokens for request in answer.requests])
        differing += requests_differing(answers)
        on, off = (found["kvtier", connected][-1].seconds for connected in (True, False))
        say(f"{section.name}, round {number + 1} of {rounds}: {off:.1f} -> {on:.1f} s")
    held_tokens = {
        "device_tokens": section.scaling.device_tokens(),
        "tier_tokens": section.scaling.tier_tokens(),
    }
    report: dict[str, Any] = {
        "shape": asdict(section.workload) | over_caches(section.workload, **held_tokens),
        **held_tokens,
        "rounds": rounds,
        "requests_per_round": section.workload.requests,
        "outputs_equal": not differing,
        "requests_differing": differing,
        "guide_percent": guide_percent(section.guide_name),
    }
    for name in engines:
        on_off = [found[name, connected] for connected in (True, False)]
        with_it, alone = (
            [round_figures(section.workload, one, token_bytes) for one in each] for each in on_off
        )
        report[name] = {
            "with": side_figures(with_it),
            "device_cache_alone": side_figures(alone),
            "ratio": compare(with_it, alone) | compare_requests(*on_off),
        }
    return report


def measure(run: Run) -> dict[str, Any]:
    """Measure them on a CPU; on a GPU the product's part does."""
    return bench_workloads(
        run.weights(), log=run.log("workloads"), say=run.say, serve_options=run.serve_options
    )


def guide_percent(name: str) -> dict[str, dict[str, float]]:
    """Return by how many percent the guide's connectors changed its figures of a workload."""
    table = _GUIDE[name]
    return {
        side: {
            figure: (with_it / without - 1) * 100
            for figure, with_it, without in zip(
                _LATENCIES_AND_THROUGHPUT, table[side], table["baseline"], strict=True
            )
        }
        for side in ("vllm_offloading", "lmcache")
    }


def compare_requests(
    with_it: Sequence[RoundServed], without: Sequence[RoundServed]
) -> dict[str, dict[str, Any]]:
    """Return the same for each request's times over its own without, of which a round counts the median.

    So a burst of some other process takes a few requests along, and not the round.
    """
    found = {}
    for name in ("ttft_s", "e2e_s"):
        medians = []
        for on, off in zip(with_it, without, strict=True):
            pairs = zip(on.requests, off.requests, strict=True)
            medians.append(median(getattr(one, name) / getattr(other, name) for one, other in pairs))
        found[f"request_{name}"] = over_rounds(medians)
    return found


def rows(report: dict[str, Any]) -> list[Row]:
    """Return rows of what `measure` returns."""
    found: list[Row] = []
    for name, title in _WORKLOADS.items():
        section = report.get(name)
        if not section:
            continue
        found.append(heading(title, section, f"outputs equal: {section['outputs_equal']}"))
        for figure, label in _SHOWN.items():
            beside = [f"vLLM's own on H100 {section['guide_percent']['vllm_offloading'][figure]:+.1f} %"]
            beside.append(f"LMCache {section['guide_percent']['lmcache'][figure]:+.1f} %")
            if "empty" in section:
                beside.append(f"here a connector that does nothing {_change(section['empty'], figure)}")
            found.append(
                (
                    f"  {label}, tier over device cache alone",
                    _change(section["kvtier"], figure),
                    ", ".join(beside),
                    _LIMITS[name].get(figure, ""),
                )
            )
        for figure, label in _OF_A_REQUEST.items():
            empty = (
                "a connector that does nothing " + percent(section["empty"]["ratio"][figure])
                if "empty" in section
                else ""
            )
            found.append((f"  {label}", percent(section["kvtier"]["ratio"][figure]), empty, ""))
        found.append(("  share of prompt tokens cached", *_hit_rates(section["kvtier"]), ""))
    return found


def _change(sides: dict[str, Any], figure: str) -> str:
    before, after = (sides[name][figure]["median"] for name in ("device_cache_alone", "with"))
    return f"{percent(sides['ratio'][figure])}, {before:.4g} -> {after:.4g}"


def _hit_rates(sides: dict[str, Any]) -> tuple[str, str]:
    with_it, alone = (sides[name]["hit_rate"]["median"] for name in ("with", "device_cache_alone"))
    return f"{with_it:.3f}", f"device cache alone {alone:.3f}"
