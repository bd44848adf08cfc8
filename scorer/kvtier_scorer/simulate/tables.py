"""What the command shows: tables of figures, and what their rows are."""

from collections.abc import Mapping
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kvtier_common.tier import Tier
from kvtier_scorer.simulate.compare import Comparison, Figures
from kvtier_scorer.simulate.hint_gain import GIVEN, NONE, HintGain
from kvtier_scorer.simulate.policies import POLICIES
from kvtier_scorer.simulate.trace import Trace

_MORE: Final = ("TTFT s\nmean", "TTFT s\nP90", "E2E s\nmean", "tokens\n/s", "load\nvaries")
_LATE: Final = 0.05  # of the trace's time
_LATE_S: Final = 10.0
_ALWAYS_LATE_S: Final = 60.0  # however long the trace is
_ABOUT_HINTS: Final = {
    NONE: "nobody says anything",
    GIVEN: "what the trace says",
    "true": "each request says when its session comes back, or that it does not",
    "all false": "each request says some time from 5 to 300 s, or that its session is over",
}


def lines_of(found: Comparison | HintGain) -> list[Table | str]:
    """What was found: the trace, a table with one row a run, and what the rows are."""
    if isinstance(found, HintGain):
        about = [f"{name}: {_ABOUT_HINTS[name]}" for name in found.figures if name in _ABOUT_HINTS]
        bound = f"optimum: no policy finds more than {found.optimum:.1%}, which may be out of reach"
        return [
            _title(found.trace),
            _table("hints", found.figures),
            *_tenants(found.figures),
            *_overload(found.trace, found.figures),
            bound,
            *about,
        ]
    about = [f"{name}: {POLICIES[name].about}" for name in found.figures]
    return [
        _title(found.trace),
        _table("policy", found.figures),
        *_tenants(found.figures),
        *_overload(found.trace, found.figures),
        *about,
    ]


def _title(trace: Trace) -> str:
    sent = (
        f"{trace.concurrency} under way" if trace.time_s is None else f"over {float(trace.time_s[-1]):,.0f} s"
    )
    tokens = int(trace.prompt_tokens.sum())
    return f"{trace.name}: {len(trace):,} requests, {tokens:,} prompt tokens, {sent}"


def _table(first: str, runs: Mapping[str, Figures]) -> Table:
    """One row a run; a tier that gave nothing to any has no column."""
    tiers = [tier for tier in Tier if any(figures.tier_hit_rate[tier] for figures in runs.values())]
    rows = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column(first, no_wrap=True)
    for column in ("hit\nrate", *(f"from\n{tier.name}" for tier in tiers), *_MORE):
        rows.add_column(column, justify="right", no_wrap=True)
    best = max((figures.hit_rate for figures in runs.values()), default=0.0)
    for name, figures in runs.items():
        rows.add_row(
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
    return rows


def _tenants(runs: Mapping[str, Figures]) -> list[str]:
    """A line for each run whose requests say whose they are: names may be of any number and length."""
    return [
        f"{run}: hit rate of " + ", ".join(f"{name} {rate:.1%}" for name, rate in each.items())
        for run, figures in runs.items()
        if (each := figures.tenant_hit_rate)
    ]


def _overload(trace: Trace, runs: Mapping[str, Figures]) -> list[str]:
    """A line where the pods did not keep up with a trace that has times."""
    if trace.time_s is None:
        return []
    limit_s = min(_ALWAYS_LATE_S, max(_LATE_S, _LATE * float(trace.time_s[-1])))
    late = [name for name, figures in runs.items() if figures.ttft_last_tenth_s > limit_s]
    if not late:
        return []
    longest_s = max(runs[name].ttft_last_tenth_s for name in late)
    line = (
        f"requests arrive faster than the pods serve with {', '.join(late)}: towards the end they wait "
        f"{longest_s:,.0f} s for a token, so times say little; give more --pods or fewer requests at a time"
    )
    return [line]
