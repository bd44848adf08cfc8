"""The llm-d guide's workloads, scaled down: rounds of every side's lives, of the same prompts.

High cache: the system prompts are more than the device cache holds. Low cache: it holds them, and all that
a tier can do is cost little. Lengths and caches are the guide's over one number, a smaller one on a GPU: that
computes more in the same time, and its prompts have to be long for a copy to gain anything over computing.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean, median
from types import MappingProxyType
from typing import Any, Final

from kvtier_common.benchmarks import Workload, p90
from kvtier_connector.bench import load
from kvtier_connector.bench.choices import NONE, TITLES
from kvtier_connector.bench.comparison import PINNING_TIMEOUT_S, Comparison
from kvtier_connector.bench.engine import BenchEngine
from kvtier_connector.bench.load import IN_BLOCKS, ON_A_GPU, Round, RoundServed, Scaling, ask_round
from kvtier_connector.bench.measure import Row, Run

ROUNDS: Final = MappingProxyType({"high_cache": 2, "low_cache": 2})  # of each workload, in each life
_RESAMPLES: Final = 10_000
_TITLES: Final = {"high_cache": "high-cache workload", "low_cache": "low-cache workload"}
_SHOWN: Final = {"mean_ttft_s": "mean TTFT", "total_tokens_per_s": "throughput"}

_Rounds = dict[str, list[RoundServed]]  # by side, in the order of turns


@dataclass(frozen=True, slots=True)
class Figures:
    """One round of one side."""

    mean_ttft_s: float  # from when a request is sent until its first token, waiting included
    p90_ttft_s: float  # as above, exceeded by at most a tenth of the requests
    mean_e2e_s: float  # until its last token
    p90_e2e_s: float  # as above, exceeded by at most a tenth
    output_tokens_per_s: float  # generated tokens over the round's time
    total_tokens_per_s: float  # those and the prompts' tokens, which the guide calls overall throughput
    hit_rate: float  # share of the prompts' tokens that were found in some cache
    tier_hit_rate: float  # share of the prompts' tokens that were loaded from the tier


_COMPARED: Final = tuple(field.name for field in fields(Figures))[:-2]
"""What has a ratio: all but the hit rates."""


def measure(run: Run) -> dict[str, Any]:
    """Measure them on what vLLM computes on."""
    scaling = ON_A_GPU if run.gpu else IN_BLOCKS
    return compare_workloads(Comparison.of(run), log=run.log("workloads"), say=run.say, scaling=scaling)


def rows(report: dict[str, Any]) -> list[Row]:
    """Return rows of what `measure` returns."""
    table: list[Row] = []
    for name, title in _TITLES.items():
        section = report.get(name)
        if not section:
            continue
        differing = f"answers that differ: {section['requests_differing']} of {section['requests']}"
        table.append(heading(title, section, differing))
        for figure, label in _SHOWN.items():
            table += [
                (f"  {label}, {TITLES[side]}", _figure(section, side, figure), "", "")
                for side in section["sides"]
            ]
        cached = (
            f"{TITLES[side]} {figures['hit_rate']['median']:.3f}"
            for side, figures in section["sides"].items()
        )
        table.append(("  share of prompt tokens cached", ", ".join(cached), "", ""))
    return table


def compare_workloads(
    comparison: Comparison,
    *,
    log: Path,
    say: Callable[[str], None],
    rounds: Mapping[str, int] = ROUNDS,
    scaling: Scaling = ON_A_GPU,
) -> dict[str, Any]:
    """Measure every side in lives that take turns; in one turn all are asked the same rounds.

    Of each workload come its shape, each side's figures, their ratios to no tier where that is a side, and
    how many requests the sides answered with different tokens. What has no rounds is left out.
    """
    longest = scaling.high_cache()
    settings = comparison.settings(
        device_tokens=scaling.device_tokens(), longest_tokens=longest.prompt_tokens + longest.output_tokens
    ) | {
        "max_num_seqs": longest.concurrency,
        "max_num_batched_tokens": scaling.step_limit_tokens(),
        "disable_log_stats": False,
    }
    workloads = {
        name: workload
        for name, workload in (("high_cache", longest), ("low_cache", scaling.low_cache()))
        if rounds.get(name)
    }
    results: dict[str, _Rounds] = {name: defaultdict(list) for name in workloads}
    for turn, side in comparison.order():
        with comparison.life(
            side,
            settings,
            tier_tokens=scaling.tier_tokens(),
            log=log.with_suffix(f".{side}.{turn + 1}.log"),
            module=load.__name__,
        ) as engine:
            engine.rest(PINNING_TIMEOUT_S)
            for name, workload in workloads.items():
                # Thrown away: the first round of a life is slower.
                first = replace(workload, prompts_per_group=1)
                ask_round(engine, Round(first, seed=f"{name} {turn} first"))
                served = ask_rounds(engine, name, workload, rounds[name], turn)
                results[name][side] += served
                times = ", ".join(f"{one.seconds:.1f} s" for one in served)
                say(f"workloads, turn {turn + 1} of {comparison.turns}, {side}, {name}: {times}")
    held_tokens = {
        "device_tokens": scaling.device_tokens(),
        "tier_tokens": comparison.tier_bytes(scaling.tier_tokens()) // comparison.token_bytes(),
    }
    return {
        "device": comparison.device,
        "turns": comparison.turns,
        **{
            name: {
                "shape": asdict(workload) | over_caches(workload, **held_tokens),
                **held_tokens,
                **compared_figures(workload, results[name], comparison.token_bytes()),
            }
            for name, workload in workloads.items()
        },
    }


def ask_rounds(
    engine: BenchEngine, name: str, workload: Workload, rounds: int, turn: int
) -> list[RoundServed]:
    """Have an engine serve rounds of one workload, the same ones in every life of a turn."""
    served = []
    for number in range(rounds):
        engine.rest()
        served.append(ask_round(engine, Round(workload, seed=f"{name} {turn} {number}")))
    return served


def over_caches(workload: Workload, *, device_tokens: int, tier_tokens: int) -> dict[str, float]:
    """Return the system prompts' tokens over those that fit the device, and device and tier."""
    system_tokens = workload.groups * workload.system_tokens
    return {
        "system_prompts_over_device": system_tokens / device_tokens,
        "system_prompts_over_device_and_cpu": system_tokens / (device_tokens + tier_tokens),
    }


def compared_figures(
    workload: Workload, rounds_of: Mapping[str, Sequence[RoundServed]], token_bytes: int
) -> dict[str, Any]:
    """Return the figures of every side's rounds, their ratios, and how many answers differ."""
    by_side = {
        side: [round_figures(workload, one, token_bytes) for one in served]
        for side, served in rounds_of.items()
    }
    differing = sum(
        requests_differing([[request.tokens for request in served.requests] for served in sides])
        for sides in zip(*rounds_of.values(), strict=True)
    )
    rounds = len(next(iter(rounds_of.values())))
    return {
        "rounds": rounds,
        "requests": rounds * workload.requests,
        "requests_differing": differing,
        "sides": {side: side_figures(figures) for side, figures in by_side.items()},
        "ratio": {
            side: compare(figures, by_side[NONE])
            for side, figures in by_side.items()
            if side != NONE and NONE in by_side
        },
    }


def requests_differing(sides: list[list[list[int]]]) -> int:
    """Return how many requests were not answered with the same tokens by all sides."""
    return sum(any(one != other for other in others) for one, *others in zip(*sides, strict=True))


def round_figures(workload: Workload, served: RoundServed, token_bytes: int) -> Figures:
    """Return the figures of one round; `token_bytes` are those of one token's KV cache."""
    first, last = ([getattr(request, name) for request in served.requests] for name in ("ttft_s", "e2e_s"))
    prompt_tokens = workload.prompt_tokens * len(served.requests)
    output_tokens = sum(len(request.tokens) for request in served.requests)
    return Figures(
        mean_ttft_s=fmean(first),
        p90_ttft_s=p90(first),
        mean_e2e_s=fmean(last),
        p90_e2e_s=p90(last),
        output_tokens_per_s=output_tokens / served.seconds,
        total_tokens_per_s=(prompt_tokens + output_tokens) / served.seconds,
        hit_rate=sum(request.cached for request in served.requests) / prompt_tokens,
        tier_hit_rate=served.loaded_bytes / token_bytes / prompt_tokens,
    )


def side_figures(rounds: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Return each figure's median over rounds, and its smallest and largest value."""
    columns = {field.name: [getattr(figures, field.name) for figures in rounds] for field in fields(Figures)}
    return {
        name: {"median": median(values), "spread": (min(values), max(values))}
        for name, values in columns.items()
    }


def compare(with_it: Sequence[Figures], without: Sequence[Figures]) -> dict[str, dict[str, Any]]:
    """Return each figure's ratio of a round with a connector to the same without: median, 95 % interval."""
    pairs = [(asdict(on), asdict(off)) for on, off in zip(with_it, without, strict=True)]
    return {name: over_rounds([on[name] / off[name] for on, off in pairs]) for name in _COMPARED}


def over_rounds(ratios: Sequence[float]) -> dict[str, Any]:
    """Return the median of ratios, its interval, and by how many percent it is off one."""
    middle = median(ratios)
    return {"ratio": middle, "ratio_ci95": confidence_95(ratios), "percent": (middle - 1) * 100}


def confidence_95(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap percentile interval of the median (Efron and Tibshirani 1993, chapter 13)."""
    numbers = random.Random(0)  # noqa: S311 - not for secrets
    medians = sorted(median(numbers.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES)]


def heading(title: str, section: dict[str, Any], answers: str) -> Row:
    """Return the row over those of one workload."""
    shape = section["shape"]
    return (
        f"{title}, {shape['groups']} x {shape['system_tokens']} tokens, {section['rounds']} rounds",
        answers,
        f"system prompts {shape['system_prompts_over_device']:.2f} of the device cache",
        "",
    )


def _figure(section: dict[str, Any], side: str, figure: str) -> str:
    value = f"{section['sides'][side][figure]['median']:.4g}"
    ratio = section["ratio"].get(side, {}).get(figure)
    if not ratio:
        return value
    return f"{value}, {percent(ratio)}"


def percent(ratio: dict[str, Any]) -> str:
    """Return a ratio of `over_rounds`, for people."""
    low, high = ((end - 1) * 100 for end in ratio["ratio_ci95"])
    return f"{ratio['percent']:+.1f} % ({low:+.1f} to {high:+.1f})"
