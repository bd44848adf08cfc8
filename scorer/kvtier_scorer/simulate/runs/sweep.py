"""Finds weights for a workload, and says how sure it is.

Candidates meet the same replicates with the same seeds (common random numbers), so what differs between them
is the weights. Successive halving: all run one replicate, the better half of them two, and so on; the best
then meets 2:2:1:1 on replicates that were not searched, because the best of many looks better than it is
where it was chosen.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import gcd
from random import Random
from typing import Any, Final

import numpy as np

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_scorer.config.model import PREFIX_SCORERS, ScorerWeights
from kvtier_scorer.simulate.engine.policy import DEFAULT_WEIGHTS, WEIGHED
from kvtier_scorer.simulate.engine.settings import PoolSettings
from kvtier_scorer.simulate.policies import KVTIER
from kvtier_scorer.simulate.runs.bootstrap import Interval, paired
from kvtier_scorer.simulate.runs.compare import run_policy
from kvtier_scorer.simulate.runs.figures import Figures
from kvtier_scorer.simulate.traces.trace import Trace

_MOST_WEIGHT: Final = 6
_HALVE: Final = 2


class Objective(StrEnum):
    """What is to be small; of the hit rate what is missing to 1."""

    TTFT_MEAN = "ttft-mean"
    TTFT_P90 = "ttft-p90"
    MISSES = "misses"

    def of(self, figures: Figures) -> float:
        """The figure, lower is better."""
        return {
            Objective.TTFT_MEAN: figures.ttft_mean_s,
            Objective.TTFT_P90: figures.ttft_p90_s,
            Objective.MISSES: 1.0 - figures.hit_rate,
        }[self]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep found.

    Attributes:
        objective: What was to be small.
        candidates: How many weights were tried.
        best: The best of them.
        value: Its objective on replicates that were not searched, on average.
        default_value: That of 2:2:1:1 on the same.
        gain: How much lower the best is, and how sure that is.
        replicates: How many of those there were.
    """

    objective: Objective
    candidates: int
    best: ScorerWeights
    value: float
    default_value: float
    gain: Interval
    replicates: int

    @property
    def sure(self) -> bool:
        """Whether the whole interval is on one side of 0, the better one."""
        return self.gain.low > 0

    def to_json(self) -> dict[str, Any]:
        """Every figure."""
        return {**asdict(self), "best": dict(self.best), "objective": str(self.objective), "sure": self.sure}


def candidate_weights(count: int, tiers: Collection[Tier], *, seed: int) -> list[ScorerWeights]:
    """Weights to try: 2:2:1:1, then others at random, 0 to 6 each, none a multiple of another.

    Args:
        count: How many, 2 at least.
        tiers: Those behind the device that there are; others get no weight.
        seed: Decides which.
    """
    found = {_reduced(DEFAULT_WEIGHTS): DEFAULT_WEIGHTS}
    for weights in _random_weights(tiers, Random(seed)):  # noqa: S311 - not for secrets
        if len(found) >= count:
            break
        found.setdefault(_reduced(weights), weights)
    return list(found.values())


def sweep(  # noqa: PLR0913 - what decides a sweep
    replicate: Callable[[int], Trace],
    pool: PoolSettings,
    objective: Objective,
    candidates: Sequence[ScorerWeights],
    *,
    replicates: int,
    seed: int,
    report: Callable[[], None] | None = None,
) -> SweepResult:
    """Find the best of the candidates.

    Args:
        replicate: The trace of a replicate; 0 and on for the search, then `replicates` more for the
            comparison.
        pool: The pods.
        objective: What is to be small.
        candidates: Weights, 2:2:1:1 among them.
        replicates: Most replicates of the search, and those of the comparison.
        seed: For ties, and for what the bootstrap draws.
        report: Is called after every run.

    Raises:
        PoolError: A request needs more blocks than a device has.
    """

    def value(weights: ScorerWeights, number: int) -> float:
        result = run_policy(KVTIER, replicate(number), pool, weights=weights, seed=seed + number)
        if report is not None:
            report()
        return objective.of(Figures.of(result))

    scores: dict[ScorerWeights, list[float]] = {weights: [] for weights in candidates}
    left = list(candidates)
    for size, rounds in rungs(len(candidates), replicates):
        left = left[:size]
        for weights in left:
            for number in range(len(scores[weights]), rounds):
                scores[weights].append(value(weights, number))
        left.sort(key=lambda weights: float(np.mean(scores[weights])))
    best = left[0]
    fresh_seeds = range(replicates, 2 * replicates)
    found = np.array([value(best, number) for number in fresh_seeds])
    default = np.array([value(DEFAULT_WEIGHTS, number) for number in fresh_seeds])
    return SweepResult(
        objective, len(candidates), best, float(found.mean()), float(default.mean()),
        paired(found, default, seed), replicates,
    )  # fmt: skip


def rungs(candidates: int, replicates: int) -> list[tuple[int, int]]:
    """Successive halving: how many candidates are left, and how many replicates each has run by then."""
    found = [(candidates, 1)]
    while found[-1][0] > 1 and found[-1][1] < replicates:
        size, rounds = found[-1]
        found.append((-(-size // _HALVE), min(rounds * _HALVE, replicates)))
    return found


def runs(candidates: int, replicates: int) -> int:
    """How many runs a sweep makes."""
    before, total = 0, 2 * replicates
    for size, rounds in rungs(candidates, replicates):
        total += size * (rounds - before)
        before = rounds
    return total


def _random_weights(tiers: Collection[Tier], numbers: Random) -> Iterator[ScorerWeights]:
    missing = {PREFIX_SCORERS[tier] for tier in BEYOND_DEVICE if tier not in tiers}
    # more draws than there are distinct weights end the search for new ones
    for _ in range(100_000):
        weights = {name: 0 if name in missing else numbers.randint(0, _MOST_WEIGHT) for name in WEIGHED}
        if any(weights.values()):
            yield ScorerWeights(weights)


def _reduced(weights: ScorerWeights) -> tuple[int, ...]:
    divisor = gcd(*weights.values())
    return tuple(number // divisor for number in weights.values())
