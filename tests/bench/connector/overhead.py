"""What the tier costs requests that never hit it, beside what vLLM takes for an empty connector."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final, NamedTuple

from tests.bench.connector import switched_engine
from tests.bench.connector.switched_engine import EMPTY, SWITCH

from kvtier_connector.bench.engine import Ask, BenchEngine, bench_engine
from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.bench.workloads import confidence_95
from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config

_PROMPT_TOKENS: Final = (512, 4096)
"""The tier costs about the same for every engine step, which is a larger share of a short prompt."""
_OUTPUT_TOKENS: Final = 16
_WARM_UP: Final = 2
_TIER: Final = ConnectorConfig(cpu_capacity_bytes=GIB)


class Pair(NamedTuple):
    """Seconds of two prompts of one length, one with the connector and one without."""

    on: float
    off: float


def measure(run: Run, pairs: int) -> list[dict[str, Any]]:
    """Measure in two engines that take turns, one with the tier and one with an empty connector.

    Each runs prompts with its connector and with it taken out, in alternating order. Nothing is found in the
    tier, but everything is stored. Both engines compute on one core and leave the others to everything else,
    and each waits until the other is at rest.

    Args:
        run: what all parts are told.
        pairs: number of pairs of prompts of each length.

    Returns:
        For each length: medians, ratios of with to without, and their 95% intervals over pairs.
    """
    log = run.log("overhead")
    core = str(max(os.sched_getaffinity(0)))
    longest = max(_PROMPT_TOKENS) + _OUTPUT_TOKENS + 64
    settings = {"model": str(run.weights()), "max_model_len": longest, **SWITCH}
    with (
        bench_engine(
            settings | {"kv_transfer_config": kv_transfer_config(_TIER)},
            log=log,
            cores=core,
            module=switched_engine.__name__,
        ) as kvtier,
        bench_engine(
            settings | {"kv_transfer_config": EMPTY},
            log=log.with_suffix(".empty.log"),
            cores=core,
            module=switched_engine.__name__,
        ) as empty,
    ):
        return [_of_length(length, kvtier, empty, pairs, run.say) for length in _PROMPT_TOKENS]


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for overhead in found:
        tokens = f"{overhead['prompt_tokens']} + {overhead['output_tokens']} tokens"
        yield (
            f"tier on but unused, over off, {tokens}, {overhead['pairs']} pairs",
            _ratio(overhead, "kvtier"),
            f"a connector that does nothing {_ratio(overhead, 'empty')}",
            "1.005",
        )


def _ratio(figures: dict[str, Any], name: str) -> str:
    low, high = figures[f"{name}_ratio_ci95"]
    extra_ms = figures[f"{name}_extra_s"] * 1e3
    return f"{figures[f'{name}_ratio']:.4f} (95% interval {low:.4f} to {high:.4f}), {extra_ms:+.1f} ms"


def _of_length(
    length: int, kvtier: BenchEngine, empty: BenchEngine, pairs: int, say: Callable[[str], None]
) -> dict[str, Any]:
    found: dict[str, list[Pair]] = {"kvtier": [], "empty": []}
    first_seed = length << 20  # no prompt begins like another one
    for number in range(_WARM_UP + pairs):
        for engine, times in zip((kvtier, empty), found.values(), strict=True):
            took = {}
            for connected in (True, False) if number % 2 else (False, True):
                ask = Ask(first_seed + 2 * number + connected, length, _OUTPUT_TOKENS)
                took[connected] = engine.exchange(asdict(ask) | {"connected": connected})["seconds"]
                engine.rest()
            if number >= _WARM_UP:
                times.append(Pair(took[True], took[False]))
    report = {"prompt_tokens": length, "output_tokens": _OUTPUT_TOKENS, "pairs": pairs}
    for name, times in found.items():
        report |= {f"{name}_{key}": value for key, value in _compare(times).items()}
        say(f"{length} tokens, {name}: on over off {report[f'{name}_ratio']:.4f}")
    return report


def _compare(pairs: Sequence[Pair]) -> dict[str, Any]:
    ratios = [pair.on / pair.off for pair in pairs]
    return {
        "off_s": median(pair.off for pair in pairs),
        "extra_s": median(pair.on - pair.off for pair in pairs),
        "ratio": median(ratios),
        "ratio_ci95": confidence_95(ratios),
    }
