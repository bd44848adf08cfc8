"""What hints would give a trace: runs of one policy, each with other things said of the same requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kvtier_common.hints import Hints, Priority
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.compare import Figures, run_policy
from kvtier_scorer.simulate.hinting import partly_false, true_hints, with_hints
from kvtier_scorer.simulate.optimum import optimum_hit_rate
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import Trace

NONE: Final = "none"
GIVEN: Final = "given"


@dataclass(frozen=True, slots=True)
class HintGain:
    """Runs by what was said, and what the best of all policies could have found."""

    trace: Trace
    policy: str
    figures: dict[str, Figures]
    optimum: float  # share of prompt tokens, 0 to 1; a bound that may not be possible

    def to_json(self) -> dict[str, Any]:
        """Every figure."""
        return {
            "trace": self.trace.name,
            "requests": len(self.trace),
            "prompt_tokens": int(self.trace.prompt_tokens.sum()),
            "policy": self.policy,
            "hints": {name: figures.to_json() for name, figures in self.figures.items()},
            "optimum_hit_rate": self.optimum,
        }


def ways(trace: Trace, error: float, false_part: float, seed: int) -> dict[str, Sequence[Hints]]:
    """What is said in each run, by its name; raises TraceError: the trace has no times.

    Args:
        trace: The requests; whose each is and what is never stored stays as it is there.
        error: By how much inexact hints are off at most, as a part.
        false_part: Part of the requests that says something false.
        seed: Of errors.
    """
    true = true_hints(trace)
    none = [replace(said, retain_s=0.0, priority=Priority.NORMAL) for said in trace.hints]
    given = {GIVEN: trace.hints} if trace.hints != tuple(none) else {}
    return {
        NONE: none,
        **given,
        "true": true,
        f"{error:.0%} off": true_hints(trace, error=error, seed=seed),
        f"{false_part:.0%} false": partly_false(true, false_part, seed),
        "all false": partly_false(true, 1.0, seed),
    }


def hint_gain(  # noqa: PLR0913 - what decides the runs
    policy: str,
    trace: Trace,
    pool: PoolSettings,
    said: dict[str, Sequence[Hints]],
    *,
    weights: ScorerWeights,
    seed: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> HintGain:
    """Run a policy once for each of `said`; `report` is called with its name for every request that ended."""
    results = {}
    for name, hints in said.items():
        hinted = with_hints(trace, hints)
        results[name] = run_policy(
            policy, hinted, pool, weights=weights, seed=seed, report=partial(report, name)
        )
    blocks = blocks_of(trace, pool.pod.block_tokens)
    figures = {name: Figures.of(result) for name, result in results.items()}
    return HintGain(trace, policy, figures, optimum_hit_rate(blocks, pool, results.values()))
