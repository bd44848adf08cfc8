"""Runs policies on the same trace, one after another."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.loop import Simulation
from kvtier_scorer.simulate.engine.policy import DEFAULT_WEIGHTS, Situation
from kvtier_scorer.simulate.engine.result import SimulationResult
from kvtier_scorer.simulate.engine.settings import PoolSettings
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.runs.figures import Figures
from kvtier_scorer.simulate.runs.optimum import optimum_hit_rate
from kvtier_scorer.simulate.traces.blocks import blocks_of
from kvtier_scorer.simulate.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class Comparison:
    """Policies side by side.

    Attributes:
        trace: The requests.
        figures: Of each policy by its name, in the order asked for.
        optimum_hit_rate: No policy finds more; see `optimum`.
    """

    trace: Trace
    figures: dict[str, Figures]
    optimum_hit_rate: float

    def to_json(self) -> dict[str, Any]:
        """Every figure."""
        return {
            "trace": self.trace.name,
            "requests": len(self.trace),
            "prompt_tokens": int(self.trace.prompt_tokens.sum()),
            "optimum_hit_rate": self.optimum_hit_rate,
            "policies": {
                name: {
                    "about": POLICIES[name].about,
                    "source": POLICIES[name].source or None,
                    **figures.to_json(),
                }
                for name, figures in self.figures.items()
            },
        }


def run_policy(  # noqa: PLR0913 - what decides a run
    name: str,
    trace: Trace,
    pool: PoolSettings,
    *,
    weights: ScorerWeights = DEFAULT_WEIGHTS,
    for_all: bool = False,
    seed: int = 0,
    report: Callable[[int], None] | None = None,
) -> SimulationResult:
    """One policy's run of a trace.

    Args:
        name: Of the policy.
        trace: The requests.
        pool: The pods.
        weights: For policies that take them; the others keep 2:2:1:1.
        for_all: Whether they are for every policy.
        seed: For ties.
        report: Is called with 1 for every request that has ended.

    Raises:
        PoolError: A request needs more blocks than a device has.
        KeyError: There is no such policy.
    """
    kind = POLICIES[name]
    situation = Situation(
        trace,
        pool,
        weights if kind.weighted or for_all else DEFAULT_WEIGHTS,
        Random(seed),  # noqa: S311 - not for secrets
    )
    blocks = blocks_of(trace, pool.pod.block_tokens)
    return Simulation(pool, blocks, kind.build(situation), report).run()


def compare(  # noqa: PLR0913 - what decides the runs
    names: Iterable[str],
    trace: Trace,
    pool: PoolSettings,
    *,
    weights: ScorerWeights = DEFAULT_WEIGHTS,
    for_all: bool = False,
    seed: int = 0,
    report: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Run policies on one trace.

    Args:
        names: Of the policies.
        trace: The requests.
        pool: The pods.
        weights: For policies that take them; the others keep 2:2:1:1.
        for_all: Whether they are for every policy.
        seed: For ties.
        report: Is called with the policy's name and 1 for every request that has ended.

    Raises:
        PoolError: A request needs more blocks than a device has.
        KeyError: There is no such policy.
    """
    results: dict[str, SimulationResult] = {}
    for name in names:

        def count(done: int, name: str = name) -> None:
            if report is not None:
                report(name, done)

        results[name] = run_policy(
            name, trace, pool, weights=weights, for_all=for_all, seed=seed, report=count
        )
    blocks = blocks_of(trace, pool.pod.block_tokens)
    return Comparison(
        trace=trace,
        figures={name: Figures.of(result) for name, result in results.items()},
        optimum_hit_rate=optimum_hit_rate(blocks, pool, results.values()),
    )
