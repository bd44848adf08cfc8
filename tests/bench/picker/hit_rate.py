"""How much of the prompts each policy finds on the guide's two workloads, beside the optimum: simulated.

python -m tests.bench.picker hit-rate --out build/bench/picker.json

Each policy replays the same traces, one a seed, with its usual weights of 2:2:1:1; kvtier's also with others,
because its resource sets them. What is simulated and what is left out: docs/user-guide/measure/simulate.md.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from tests.bench.picker.results import merge

from kvtier_common.benchmarks import HIGH_CACHE, LOW_CACHE, Workload
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.compare import Figures, run_policy
from kvtier_scorer.simulate.optimum import optimum_hit_rate
from kvtier_scorer.simulate.option_texts import weights_of
from kvtier_scorer.simulate.policies import KVTIER, KVTIER_PRECISE, POLICIES, ROUND_ROBIN
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, WEIGHED
from kvtier_scorer.simulate.settings import QWEN3_32B_2X_H100, PoolSettings
from kvtier_scorer.simulate.trace import SimulationError, generate

KEY: Final = "hit_rate"
_HIGH: Final = "high-cache"
_LOW: Final = "low-cache"
_OURS: Final = (KVTIER, KVTIER_PRECISE)
_WITHIN: Final = 0.05
"""Of the optimum: how much less kvtier may find on the High-cache trace."""
_DEFAULT_SEEDS: Final = 5
POOL: Final = PoolSettings(pods=8, pod=QWEN3_32B_2X_H100, scrape_interval_s=0.1)
"""The guide's eight engines; the interval is the default of kvtier's picker."""


@dataclass(frozen=True, slots=True)
class Series:
    """One policy's runs of a workload, one a seed.

    Attributes:
        hit_rate: Prompt tokens found over prompt tokens asked for.
        ttft_mean_s: Mean time to first token.
    """

    hit_rate: tuple[float, ...]
    ttft_mean_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload's runs.

    Attributes:
        series: By the policy's name; kvtier's with other weights are named with them.
        optimum: The bound for each seed.
    """

    series: Mapping[str, Series]
    optimum: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Mean hit rates by policy, the optimum's among them, and beside them their spread and the TTFT."""
        return {
            **{name: _mean(runs.hit_rate) for name, runs in self.series.items()},
            "optimum": _mean(self.optimum),
            "hit_rate_deviation": {name: _deviation(runs.hit_rate) for name, runs in self.series.items()},
            "ttft_mean_s": {name: _mean(runs.ttft_mean_s) for name, runs in self.series.items()},
            "ttft_mean_deviation_s": {
                name: _deviation(runs.ttft_mean_s) for name, runs in self.series.items()
            },
        }


def measure(  # noqa: PLR0913 - what decides the runs
    name: str,
    workload: Workload,
    pool: PoolSettings,
    *,
    seeds: int,
    weights: Sequence[ScorerWeights] = (),
    report: Callable[[], None] | None = None,
) -> Measured:
    """Run every policy on one workload.

    Args:
        name: Of the workload.
        workload: What is asked.
        pool: The pods.
        seeds: How many; 0 and on.
        weights: Others than 2:2:1:1 that kvtier's policies also run with.
        report: Is called after every seed.

    Raises:
        PoolError: A request needs more blocks than a device has.
    """
    hit_rate: dict[str, list[float]] = {}
    ttft_mean_s: dict[str, list[float]] = {}
    optimum = []
    for seed in range(seeds):
        trace = generate(name, workload, seed)
        bounds = []
        blocks = blocks_of(trace, pool.pod.block_tokens)
        for each in dict.fromkeys((DEFAULT_WEIGHTS, *weights)):
            names = tuple(POLICIES) if each == DEFAULT_WEIGHTS else _OURS
            results = {policy: run_policy(policy, trace, pool, weights=each, seed=seed) for policy in names}
            bounds.append(optimum_hit_rate(blocks, pool, results.values()))
            for policy, result in results.items():
                figures = Figures.of(result)
                hit_rate.setdefault(_policy_name(policy, each), []).append(figures.hit_rate)
                ttft_mean_s.setdefault(_policy_name(policy, each), []).append(figures.ttft_mean_s)
        optimum.append(max(bounds))
        if report is not None:
            report()
    return Measured(
        {policy: Series(tuple(rates), tuple(ttft_mean_s[policy])) for policy, rates in hit_rate.items()},
        tuple(optimum),
    )


def check_promises(high: Measured, low: Measured) -> dict[str, dict[str, bool]]:
    """What the product promises of kvtier's hit rate, and whether it is so on average; by policy."""
    ours = [name for name in high.series if name.startswith(KVTIER)]
    others = max(_mean(runs.hit_rate) for name, runs in high.series.items() if name not in ours)
    optimum = _mean(high.optimum)
    turns_s = _mean(low.series[ROUND_ROBIN].ttft_mean_s)
    return {
        name: {
            "high_cache_within_5_percent_of_optimum": _mean(high.series[name].hit_rate)
            >= (1 - _WITHIN) * optimum,
            "high_cache_better_than_every_other": _mean(high.series[name].hit_rate) > others,
            "low_cache_ttft_not_worse_than_round_robin": _mean(low.series[name].ttft_mean_s) <= turns_s,
        }
        for name in ours
    }


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("build/bench/picker.json")
)
@click.option("--seeds", type=click.IntRange(min=1), default=_DEFAULT_SEEDS, show_default=True)
@click.option(
    "--weights", multiple=True, default=["1:1:1:1"], show_default=True, help="kvtier also runs with these."
)
def main(out: Path, seeds: int, weights: Sequence[str]) -> None:
    """Measure hit rates on the guide's two workloads."""
    try:
        others = [weights_of(text) for text in weights]
        found = {}
        for name, workload in ((_HIGH, HIGH_CACHE), (_LOW, LOW_CACHE)):
            with click.progressbar(length=seeds, label=name) as bar:
                step = partial(bar.update, 1)
                found[name] = measure(name, workload, POOL, seeds=seeds, weights=others, report=step)
        figures = {
            **{name: each.to_json() for name, each in found.items()},
            "seeds": seeds,
            "required": check_promises(found[_HIGH], found[_LOW]),
        }
        merge(out, {KEY: figures})
    except SimulationError as error:
        raise click.ClickException(str(error)) from None
    click.echo(json.dumps(figures, indent=2))


def _policy_name(policy: str, weights: ScorerWeights) -> str:
    if weights == DEFAULT_WEIGHTS:
        return policy
    return f"{policy} {':'.join(str(weights[name]) for name in WEIGHED[:4])}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _deviation(values: Sequence[float]) -> float:
    """Standard deviation of a sample; 0 of one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
