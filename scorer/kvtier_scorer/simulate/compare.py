"""Runs policies on the same trace, one after another, and says each run in a few numbers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from random import Random
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kvtier_common.benchmarks import p90
from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.loop import Simulation, SimulationResult
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, Situation
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import Trace


@dataclass(frozen=True, slots=True)
class Figures:
    """One policy's run of one trace."""

    hit_rate: float  # prompt tokens found over prompt tokens asked for, 0 to 1
    tier_hit_rate: Mapping[Tier, float]  # the same by the tier in which they were found
    ttft_mean_s: float  # mean time to first token
    ttft_p90_s: float  # time that 90 % of the first tokens did not exceed (nearest rank)
    e2e_mean_s: float  # mean time to the last token
    # tokens of prompts and answers over the time from the first request to the last answer
    tokens_per_s: float
    # standard deviation over mean of the pods' tokens of prompts and answers; 0 is even
    load_variation: float
    tenant_hit_rate: Mapping[str, float]  # hit rate by tenant, where requests say whose they are
    # mean time to first token of the last tenth sent: where it is long, requests came faster than were served
    ttft_last_tenth_s: float
    requests: int  # served
    ttft_s: NDArray[np.float64]  # of each request, in the order sent (float64)

    @classmethod
    def of(cls, result: SimulationResult) -> Self:
        """The figures of a run that has ended."""
        prompt, output = result.trace.prompt_tokens, result.trace.output_tokens
        asked_tokens = int(prompt.sum())
        ttft_s = result.ttft_s
        per_pod = np.bincount(result.pod, weights=prompt + output, minlength=result.pods)
        seconds = float(result.end_s.max() - result.sent_s.min())
        return cls(
            hit_rate=int(result.hit_tokens.sum()) / asked_tokens,
            tier_hit_rate={tier: int(result.hit_tokens[tier].sum()) / asked_tokens for tier in Tier},
            ttft_mean_s=float(ttft_s.mean()),
            ttft_p90_s=p90(ttft_s.tolist()),
            e2e_mean_s=float((result.end_s - result.sent_s).mean()),
            tokens_per_s=(asked_tokens + int(output.sum())) / seconds,
            load_variation=float(per_pod.std() / per_pod.mean()),
            tenant_hit_rate=_by_tenant(result),
            ttft_last_tenth_s=float(ttft_s[-max(1, len(ttft_s) // 10) :].mean()),
            requests=len(ttft_s),
            ttft_s=ttft_s,
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure but the single requests'."""
        plain = asdict(self)
        del plain["ttft_s"]
        plain["tier_hit_rate"] = {tier.label: rate for tier, rate in self.tier_hit_rate.items()}
        return plain


def _by_tenant(result: SimulationResult) -> dict[str, float]:
    tenants = np.array([hints.tenant for hints in result.trace.hints])
    hits = result.hit_tokens.sum(axis=0)
    return {
        name: float(hits[tenants == name].sum() / result.trace.prompt_tokens[tenants == name].sum())
        for name in sorted({*tenants.tolist()} - {""})
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Policies side by side, by name in the order asked for."""

    trace: Trace
    figures: dict[str, Figures]

    def to_json(self) -> dict[str, Any]:
        """Every figure."""
        return {
            "trace": self.trace.name,
            "requests": len(self.trace),
            "prompt_tokens": int(self.trace.prompt_tokens.sum()),
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
    report: Callable[[], None] | None = None,
) -> SimulationResult:
    """One policy's run of a trace; `report` is called for every request that has ended.

    `weights` are for policies that take them, or `for_all`; the others keep 2:2:1:1. `seed` is for ties.
    Raises PoolError: a request needs more blocks than a device has.
    """
    kind = POLICIES[name]
    own = weights if kind.weighted or for_all else DEFAULT_WEIGHTS
    situation = Situation(trace, pool, own, Random(seed))  # noqa: S311 - not for secrets
    return Simulation(pool, blocks_of(trace, pool.pod.block_tokens), kind.build(situation), report).run()


def compare(  # noqa: PLR0913 - what decides the runs
    names: Iterable[str],
    trace: Trace,
    pool: PoolSettings,
    *,
    weights: ScorerWeights = DEFAULT_WEIGHTS,
    for_all: bool = False,
    seed: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Run policies on one trace; `report` is called with the policy's name."""
    figures = {}
    for name in names:
        result = run_policy(
            name, trace, pool, weights=weights, for_all=for_all, seed=seed, report=partial(report, name)
        )
        figures[name] = Figures.of(result)
    return Comparison(trace, figures)
