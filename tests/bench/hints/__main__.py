"""Hit rates with hints and with tenants' parts, beside LRU and the optimum, and a picture of them.

python -m tests.bench.hints --out build/bench/hints.json --picture docs/images/hints.svg

Of each seed all sides are run in turn on the same trace. The index is the connector's own; its clock shows
the trace's time, and a request is served at once.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
from tests.bench.connector.hit_rate import hit_rate
from tests.bench.hints.caches import (
    Asked,
    in_chunks,
    index_hits,
    lru_hits,
    optimum_hits,
    working_set_chunks,
)
from tests.bench.hints.picture import picture

from kvtier_common.hints import NO_HINTS, Hints
from kvtier_connector.core.index.hints import TenantPart
from kvtier_scorer.simulate.agents import AgentsWorkload, agents
from kvtier_scorer.simulate.hinting import greedy, partly_false, true_hints
from kvtier_scorer.simulate.tenants import FLOOD, STEADY, TenantsWorkload, tenants
from kvtier_scorer.simulate.trace import build_trace

SETS_A_TIER: Final = 3
"""The agents' working set is so many times the tier."""
RETAINED: Final = 0.3
GUARANTEED: Final = 0.5
"""Of the tier, to the steady tenant: twice its working set on average, which has its highs and lows."""
_LEAST_GAIN: Final = 0.15
_WITHIN: Final = 0.02
_WINDOWS: Final = 24

Found = dict[str, float]


def measure_agents(seed: int, requests: int) -> Found:
    """Hit rates of one trace of agents by side, and what is asked of true hints."""
    trace = build_trace("agents", agents(AgentsWorkload(requests=requests), seed))
    asked = in_chunks(trace)
    capacity = int(working_set_chunks(asked) / SETS_A_TIER)
    true = true_hints(trace)
    said: dict[str, Sequence[Hints]] = {
        "no hints": [NO_HINTS] * len(trace),
        "true hints": true,
        "50 % off": true_hints(trace, error=0.5, seed=seed),
        "a third false": partly_false(true, 1 / 3, seed),
        "all false": partly_false(true, 1.0, seed),
        "half greedy": greedy(true, 0.5, seed),
    }
    found = {
        "LRU": _rate(asked, lru_hits(asked, capacity)),
        "LRU of the rest": _rate(asked, lru_hits(asked, int(capacity * (1 - RETAINED)))),
    }
    for name, hints in said.items():
        hits = index_hits(asked, capacity, hints=hints, retained_share=RETAINED)
        found[name] = _rate(asked, hits)
    found["optimum"] = _rate(asked, optimum_hits(asked, capacity))
    gain = min(_LEAST_GAIN, (found["optimum"] - found["LRU"]) / 2)
    return found | {"asked": found["LRU"] + gain, "capacity_chunks": float(capacity)}


def measure_tenants(seed: int, requests: int) -> tuple[Found, dict[str, list[tuple[float, float]]]]:
    """Hit rates of the steady tenant by side while another floods, and the same over time."""
    steady = AgentsWorkload(sessions=20, requests=requests, pause_s=(5.0, 60.0))
    workload = TenantsWorkload(steady=steady)
    both = in_chunks(build_trace("tenants", tenants(workload, seed)))
    alone = in_chunks(build_trace("alone", tenants(workload, seed, alone=True)))
    capacity = int(2 * working_set_chunks(alone) / GUARANTEED)
    parts = {STEADY: TenantPart(GUARANTEED, 1.0), FLOOD: TenantPart(0.0, 1.0)}
    runs = {
        "alone": (alone, index_hits(alone, capacity)),
        "alone in half the tier": (alone, index_hits(alone, int(capacity * GUARANTEED))),
        "with the flood, LRU": (both, lru_hits(both, capacity)),
        "with the flood": (both, index_hits(both, capacity)),
        "with the flood, half guaranteed": (both, index_hits(both, capacity, tenants=parts)),
    }
    begins_s = workload.flood_begins_s
    rates = {name: _steady_rate(asked, hits, begins_s, float("inf")) for name, (asked, hits) in runs.items()}
    end_s = alone.times_s[-1]
    edges = [end_s * place / _WINDOWS for place in range(_WINDOWS + 1)]
    lines = {
        name: [(edge, _steady_rate(*run, begin, edge)) for begin, edge in pairwise(edges)]
        for name, run in runs.items()
        if name != "alone in half the tier"
    }
    return rates | {"capacity_chunks": float(capacity)}, lines


def _rate(asked: Asked, hits: Sequence[int]) -> float:
    return hit_rate(asked.prompts, hits)


def _steady_rate(asked: Asked, hits: Sequence[int], begin_s: float, end_s: float) -> float:
    found = of = 0
    for prompt, time_s, said, hit in zip(asked.prompts, asked.times_s, asked.trace.hints, hits, strict=True):
        if said.tenant == STEADY and begin_s <= time_s < end_s:
            found, of = found + hit, of + len(prompt)
    return found / of if of else 0.0


def over_seeds(each: Sequence[Found]) -> dict[str, dict[str, float]]:
    """Median, least and most of each figure."""
    return {
        name: {
            "median": median(found[name] for found in each),
            "least": min(found[name] for found in each),
            "most": max(found[name] for found in each),
        }
        for name in each[0]
    }


def check(agents_found: Sequence[Found], tenants_found: Sequence[Found]) -> dict[str, bool]:
    """What is asked, and whether it is so with every seed."""
    bad = ("a third false", "all false", "half greedy")
    return {
        "true_hints_gain_15_points_or_half_of_the_optimum": all(
            found["true hints"] >= found["asked"] for found in agents_found
        ),
        "bad_hints_no_worse_than_lru_without_the_retained_part": all(
            found[name] >= found["LRU of the rest"] for found in agents_found for name in bad
        ),
        "flooded_tenant_within_2_points_of_alone": all(
            found["with the flood, half guaranteed"] >= found["alone"] - _WITHIN for found in tenants_found
        ),
    }


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("build/bench/hints.json")
)
@click.option("--picture", "drawn", type=click.Path(path_type=Path, dir_okay=False), help="Also draw an SVG.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--requests", type=click.IntRange(min=100), default=4000, show_default=True, help="Of agents.")
def main(out: Path, drawn: Path | None, seeds: int, requests: int) -> None:
    """Measure what hints and tenants' parts give."""
    by_agents, by_tenants = [], []
    lines: dict[str, list[tuple[float, float]]] = {}
    with click.progressbar(range(seeds), label="seeds") as bar:
        for seed in bar:
            by_agents.append(measure_agents(seed, requests))
            rates, series = measure_tenants(seed, requests // 2)
            by_tenants.append(rates)
            lines = lines or series
    figures: dict[str, Any] = {
        "seeds": seeds,
        "requests": requests,
        "agents": over_seeds(by_agents),
        "tenants": over_seeds(by_tenants),
        "required": check(by_agents, by_tenants),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"hints": figures}, indent=2) + "\n", encoding="utf-8")
    if drawn is not None:
        drawn.write_text(picture(figures["agents"], lines), encoding="utf-8")
    click.echo(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
