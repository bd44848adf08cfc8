"""What is made of the times of engines with a store, without one, and with one that is too slow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench.engine import Answer
from kvtier_connector.bench.load import RoundServed
from kvtier_connector.bench.measure import Row
from kvtier_connector.bench.store.wire import Moved
from kvtier_connector.bench.workloads import (
    compare,
    heading,
    over_rounds,
    percent,
    requests_differing,
    round_figures,
    side_figures,
)

WITHOUT: Final = "without"
WITH_STORE: Final = "store"
SLOW: Final = "slow"
"""Sides, by name."""
_ALLOWED: Final = {WITH_STORE: 1.15, SLOW: 1.01}
_SHOWN: Final = {"mean_ttft_s": "mean TTFT", "total_tokens_per_s": "throughput"}


@dataclass(frozen=True, slots=True)
class Times:
    """What one prompt took, on every side and on the wire."""

    asked: Mapping[str, Answer]  # of the second engines: what the store has, or nothing
    hits: Mapping[str, Sequence[Answer]]  # of them, then, from the device's cache
    in_memory: Sequence[Answer]  # of the first engines, from their memory
    wire: Moved  # by plain sockets
    read: Moved  # by the tier's own threads, in a process without an engine
    write: Moved  # likewise


def ttft_figures(titles: Mapping[str, str], times: Sequence[Times]) -> dict[str, Any]:
    """Return what there is to say of prompts, side by side."""
    wire_s = [prompt.wire.seconds for prompt in times]
    hit_s = {name: [median(_seconds(prompt.hits[name])) for prompt in times] for name in titles}
    sides = dict[str, Any]()
    for name, title in titles.items():
        asked_s = [prompt.asked[name].seconds for prompt in times]
        longer_s = list(map(max, wire_s, hit_s[name]))
        both_s = [wire + hit for wire, hit in zip(wire_s, hit_s[name], strict=True)]
        without_s = [prompt.asked[WITHOUT].seconds for prompt in times]
        sides[name] = {
            "title": title,
            "ttft_s": _spread(asked_s),
            "device_hit_s": _spread(hit_s[name]),
            "cached_tokens": min(prompt.asked[name].cached for prompt in times),
            "over_longer": over_rounds(_ratios(asked_s, longer_s)),
            "over_both": over_rounds(_ratios(asked_s, both_s)),
            "over_without": over_rounds(_ratios(asked_s, without_s)),
        }
    return {
        "repeats": len(times),
        "wire_s": _spread(wire_s),
        "cpu_s_per_gib": {
            kind: _spread([getattr(prompt, kind).cpu_s_per_gib for prompt in times])
            for kind in ("wire", "read", "write")
        },
        "sides": sides,
        "outputs_equal": all(_are_equal(prompt) for prompt in times),
    }


def _are_equal(times: Times) -> bool:
    """Tell whether all that had a prompt in some cache answered alike."""
    answers: list[Answer] = [*times.in_memory, *(answer for answer in times.asked.values() if answer.cached)]
    hits = [answer for more in times.hits.values() for answer in more]
    return len({tuple(answer.tokens) for answer in answers + hits}) <= 1


def _seconds(answers: Sequence[Answer]) -> list[float]:
    return [answer.seconds for answer in answers]


def _ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(ones, others, strict=True)]


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"median": median(values), "spread": [min(values), max(values)]}


def together(parts: Sequence[RoundServed]) -> RoundServed:
    """Return a round of several engines that served it at the same time."""
    return RoundServed(
        max(part.seconds for part in parts),
        [request for part in parts for request in part.requests],
        sum(part.loaded_bytes for part in parts),
        sum(part.store_bytes for part in parts),
    )


def workload_figures(
    workload: Workload,
    titles: Mapping[str, str],
    served: Mapping[str, Sequence[RoundServed]],
    token_bytes: int,
) -> dict[str, Any]:
    """Return each side's figures, and their ratios to no remote tier."""
    figures = {
        name: [round_figures(workload, one, token_bytes) for one in rounds] for name, rounds in served.items()
    }
    prompt_bytes = workload.prompt_tokens * workload.requests * token_bytes
    answers = [[[request.tokens for request in one.requests] for one in rounds] for rounds in served.values()]
    return {
        "rounds": len(served[WITHOUT]),
        "requests": len(served[WITHOUT]) * workload.requests,
        "requests_differing": sum(requests_differing(list(sides)) for sides in zip(*answers, strict=True)),
        "sides": {
            name: {
                "title": titles[name],
                **side_figures(rounds),
                "store_hit_rate": _spread([one.store_bytes / prompt_bytes for one in served[name]]),
            }
            for name, rounds in figures.items()
        },
        "ratio": {
            name: compare(rounds, figures[WITHOUT]) for name, rounds in figures.items() if name != WITHOUT
        },
    }


def rows(report: dict[str, Any]) -> list[Row]:
    """Return rows of what `measure` returns."""
    ttft, workload = report["ttft"], report["high_cache"]
    cpu = {kind: _between(figures) for kind, figures in ttft["cpu_s_per_gib"].items()}
    table: list[Row] = [
        (
            f"TTFT of {ttft['prompt_tokens']} tokens that another engine computed, {report['device']}",
            f"outputs equal: {ttft['outputs_equal']}",
            f"{ttft['found_bytes'] >> 20} MiB by plain sockets {_between(ttft['wire_s'], 1e3, ' ms')}",
            "",
        )
    ]
    for name, side in ttft["sides"].items():
        over = "over_without" if name == SLOW else "over_longer"
        limit = f"{_ALLOWED[name]} x" if name in _ALLOWED else ""
        beside = f"device hit {_between(side['device_hit_s'], 1e3, ' ms')}, {side['cached_tokens']} cached"
        if name != WITHOUT:
            than = "no remote tier" if name == SLOW else "the longer of wire and hit"
            beside += f"; {side[over]['ratio']:.3f} x {than}, {side['over_both']['ratio']:.2f} x both"
        table.append((f"  {side['title']}", _between(side["ttft_s"], 1e3, " ms"), beside, limit))
    table.append(
        (
            "  client's CPU seconds a GiB",
            f"read {cpu['read']}, write {cpu['write']}",
            f"plain sockets {cpu['wire']}",
            "0.25",
        )
    )
    table.append(
        heading(
            "high-cache workload over two engines",
            workload,
            f"answers that differ: {workload['requests_differing']} of {workload['requests']}",
        )
    )
    for figure, label in _SHOWN.items():
        for name, side in workload["sides"].items():
            ratio = workload["ratio"].get(name, {}).get(figure)
            value = f"{side[figure]['median']:.4g}" + (f", {percent(ratio)}" if ratio else "")
            table.append((f"  {label}, {side['title']}", value, "", ""))
    rates = ", ".join(
        f"{side['title']} {side['hit_rate']['median']:.3f} (store {side['store_hit_rate']['median']:.3f})"
        for side in workload["sides"].values()
    )
    table.append(("  share of prompt tokens cached", rates, "", ""))
    return table


def _between(figures: Mapping[str, Any], scale: float = 1.0, unit: str = "") -> str:
    low, high = figures["spread"]
    return f"{figures['median'] * scale:.3g}{unit} ({low * scale:.3g} to {high * scale:.3g})"
