"""The guide's workloads on a GPU: rounds of every side's lives, of the same prompts.

Lengths and caches are the guide's over one number, as on a CPU, but a smaller one: a GPU computes more in the
same time, and its prompts have to be long for a copy to gain anything over computing.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench.parts.workloads.figures import (
    compare,
    compare_requests,
    figures,
    guide_percent,
)
from kvtier_connector.bench.parts.workloads.figures import side as side_figures
from kvtier_connector.bench.parts.workloads.load import Round, RoundServed
from kvtier_connector.bench.parts.workloads.on_cpu import LOAD, requests_differing, served
from kvtier_connector.bench.parts.workloads.shape import IN_BLOCKS, Scaling
from kvtier_connector.bench.sides.comparison import Comparison
from kvtier_connector.bench.sides.life import PINNING_TIMEOUT_S, life, log_of
from kvtier_connector.bench.sides.names import NONE

ROUNDS: Final = MappingProxyType({"high_cache": 2, "low_cache": 2})
"""Of each workload, in each life."""
SCALING: Final = replace(IN_BLOCKS, divisor=8)

_Rounds = dict[str, list[RoundServed]]
"""By side, in the order of turns."""


def compare_workloads(
    comparison: Comparison,
    *,
    log: Path,
    say: Callable[[str], None],
    rounds: Mapping[str, int] = ROUNDS,
    scaling: Scaling = SCALING,
) -> dict[str, Any]:
    """Measure every side in lives that take turns; in one turn all are asked the same rounds.

    Args:
        comparison: the sides.
        log: files for the engines' output; each adds its suffix.
        say: is told how far it is.
        rounds: of each workload in each life; what has none is left out.
        scaling: how much smaller than the guide's the workloads are.

    Returns:
        For each workload its shape, each side's figures, their ratios to no tier where that is a side, the
        guide's, and how many requests the sides answered with different tokens.

    Raises:
        ConnectorError: an engine died.
    """
    longest = scaling.high_cache()
    settings = comparison.settings(
        device_tokens=scaling.device_tokens(), longest_tokens=longest.prompt_tokens + longest.output_tokens
    ) | {
        "max_num_seqs": longest.concurrency,
        "max_num_batched_tokens": scaling.step_limit_tokens(),
    }
    transfers = comparison.transfers(scaling.tier_tokens())
    workloads = {
        name: workload
        for name, workload in (("high_cache", longest), ("low_cache", scaling.low_cache()))
        if rounds.get(name)
    }
    found: dict[str, _Rounds] = {name: defaultdict(list) for name in workloads}
    for turn, side in comparison.order():
        with life(
            settings, transfers[side], given=comparison.given, log=log_of(log, side, turn), module=LOAD
        ) as running:
            running.engine.rest(PINNING_TIMEOUT_S)
            for name, workload in workloads.items():
                # Thrown away: the first round of a life is slower.
                first = replace(workload, prompts_per_group=1)
                served(running.engine, Round(first, seed=f"{name} {turn} first", connected=None))
                for number in range(rounds[name]):
                    running.engine.rest()
                    asked = Round(workload, seed=f"{name} {turn} {number}", connected=None)
                    found[name][side].append(served(running.engine, asked))
                times = ", ".join(f"{each.seconds:.1f} s" for each in found[name][side][-rounds[name] :])
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
                "shape": asdict(workload) | _over_caches(workload, **held_tokens),
                **held_tokens,
                "guide_percent": guide_percent(name),
                **_figures(workload, found[name], comparison.token_bytes()),
            }
            for name, workload in workloads.items()
        },
    }


def _over_caches(workload: Workload, *, device_tokens: int, tier_tokens: int) -> dict[str, float]:
    """Return the system prompts' tokens over those that fit the device, and device and tier."""
    system_tokens = workload.groups * workload.system_tokens
    return {
        "system_prompts_over_device": system_tokens / device_tokens,
        "system_prompts_over_device_and_cpu": system_tokens / (device_tokens + tier_tokens),
    }


def _figures(workload: Workload, found: _Rounds, token_bytes: int) -> dict[str, Any]:
    by_side = {side: [figures(workload, one, token_bytes) for one in each] for side, each in found.items()}
    differing = sum(requests_differing(_tokens(each)) for each in zip(*found.values(), strict=True))
    rounds = len(next(iter(found.values())))
    return {
        "rounds": rounds,
        "requests": rounds * workload.requests,
        "requests_differing": differing,
        "sides": {side: side_figures(each) for side, each in by_side.items()},
        "ratio": {
            side: compare(each, by_side[NONE]) | compare_requests(found[side], found[NONE])
            for side, each in by_side.items()
            if side != NONE and NONE in by_side
        },
    }


def _tokens(rounds: Sequence[RoundServed]) -> list[list[list[int]]]:
    return [[request.tokens for request in each.requests] for each in rounds]
