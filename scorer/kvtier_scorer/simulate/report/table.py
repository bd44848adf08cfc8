"""A comparison and a sweep for a terminal: 80 columns are enough."""

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.policy import DEFAULT_WEIGHTS, WEIGHED
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.runs.compare import Comparison
from kvtier_scorer.simulate.runs.sweep import SweepResult

_MORE = ("TTFT s\nmean", "TTFT s\nP90", "E2E s\nmean", "tokens\n/s", "load\nvaries")


def comparison_lines(comparison: Comparison) -> list[Table | str]:
    """The trace, a table with one row a policy and the bound, and what the policies are."""
    trace = comparison.trace
    sent = (
        f"{trace.concurrency} under way" if trace.time_s is None else f"over {float(trace.time_s[-1]):,.0f} s"
    )
    tokens = int(trace.prompt_tokens.sum())
    title = f"{trace.name}: {len(trace):,} requests, {tokens:,} prompt tokens, {sent}"
    about = [f"{name}: {POLICIES[name].about}" for name in comparison.figures]
    return [title, table(comparison), *about]


def table(comparison: Comparison) -> Table:
    """One row a policy, and the bound; a tier that gave nothing to any policy has no column."""
    every = comparison.figures.values()
    tiers = [tier for tier in Tier if any(figures.tier_hit_rate[tier] for figures in every)]
    found = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    found.add_column("policy", no_wrap=True)
    for column in ("hit\nrate", *(f"from\n{tier.name}" for tier in tiers), *_MORE):
        found.add_column(column, justify="right", no_wrap=True)
    best = max((figures.hit_rate for figures in every), default=0.0)
    for name, figures in comparison.figures.items():
        found.add_row(
            name,
            f"{figures.hit_rate:.1%}",
            *(f"{figures.tier_hit_rate[tier]:.1%}" for tier in tiers),
            f"{figures.ttft_mean_s:.2f}",
            f"{figures.ttft_p90_s:.2f}",
            f"{figures.e2e_mean_s:.1f}",
            f"{figures.tokens_per_s:,.0f}",
            f"{figures.load_variation:.1%}",
            style="bold" if figures.hit_rate == best else "",
        )
    found.add_section()
    found.add_row("optimum", f"{comparison.optimum_hit_rate:.1%}")
    return found


def sweep_lines(result: SweepResult) -> list[str]:
    """What a sweep found, in sentences."""
    best = f"best of {result.candidates} weights for {result.objective}: {weights_text(result.best)}"
    if result.best == DEFAULT_WEIGHTS:
        return [best, f"nothing beat the default; {result.objective} {result.value:.4g} on average"]
    gain = result.gain
    interval = f"95 % interval of the gain is {gain.low:.4g} to {gain.high:.4g}"
    verdict = (
        f"better than 2:2:1:1: the {interval}"
        if result.sure
        else f"not surely better than 2:2:1:1: the {interval}; keep 2:2:1:1 or give more --replicates"
    )
    where = f"on {result.replicates} replicates that were not searched"
    values = f"{result.objective} {result.value:.4g}, with 2:2:1:1 {result.default_value:.4g}, {where}"
    return [best, values, f"{verdict}; it won {gain.won:.0%} of them"]


def weights_text(weights: ScorerWeights) -> str:
    """queue:utilization:gpu:cpu:disk."""
    return ":".join(str(weights[name]) for name in WEIGHED)
