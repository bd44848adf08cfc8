"""What requests wait for while a tier grows beside their engine, in turns with a growth that is held."""

import fcntl
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_common.metrics import cpu_tier
from kvtier_connector.bench.engine import bench_engine, serve
from kvtier_connector.bench.measure import Row, Run, p99
from kvtier_connector.bench.vllm_arguments import make_llm
from kvtier_connector.config import GIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.errors import ConnectorError

_GIB: Final = 6
_PROMPT_TOKENS: Final = 32
_OUTPUT_TOKENS: Final = 1
_LIVES: Final = 4
_WARM_UP: Final = 50  # requests
_SIDES: Final = ("growing", "held")
_COMPARED: Final = ("back_to_back", "at_intervals")
_CONNECTOR: Final = "tests.bench.connector.held_growth"
_HOLD: Final = "KVTIER_BENCH_HOLD"
"""Of the environment: the file that is locked while a tier is held."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """How requests come in a life."""

    gap_s: float  # before each
    requests: int  # of a turn
    turns: int  # of each side


_PATTERNS: Final = {
    "back_to_back": _Pattern(gap_s=0.0, requests=25, turns=40),
    # the engine is at rest for the last part of each
    "at_intervals": _Pattern(gap_s=0.07, requests=1, turns=60),
    "at_rest": _Pattern(gap_s=0.3, requests=1, turns=1),
}


def measure(run: Run, gib: int = _GIB) -> dict[str, Any]:
    """Ask engines one short prompt after another while their tiers grow, and in turns with that while not.

    Args:
        run: The options.
        gib: Size of the tier, on ordinary pages, which take longest; it is not all there in the end.

    Returns:
        For requests back to back and at intervals: seconds of a request on both sides, the ratio of their
        99th percentiles, of all lives and of each, and bytes that the tier grew in a second. At rest: that.
    """
    tier = ConnectorConfig(cpu_capacity_bytes=gib * GIB, hugepages=Policy.NEVER)
    settings = {
        "model": str(run.weights()),
        "max_model_len": 1024,
        "kv_transfer_config": kv_transfer_config(tier) | {"kv_connector_module_path": _CONNECTOR},
        "disable_log_stats": False,
    }
    lives = list[dict[str, Any]]()
    for life in range(_LIVES):
        with tempfile.NamedTemporaryFile(prefix="kvtier-") as file:
            os.environ[_HOLD] = file.name
            with bench_engine(settings, log=run.log("growth"), module=__name__) as engine:
                lives.append(engine.exchange({"growing_first": not life % 2}))
        run.say(f"growth: life {life + 1} of {_LIVES}: {_p99_ratio(lives[-1]['back_to_back']):.3f}")
    figures = {name: _figures([life[name] for life in lives]) for name in _COMPARED}
    at_rest = _rate([life["at_rest"] for life in lives])
    return {"gib": gib, "lives": len(lives), "at_rest_bytes_per_s": at_rest, **figures}


def rows(growth: dict[str, Any]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for name in _COMPARED:
        figures = growth[name]
        for what, key in (("median", "s"), ("99th percentile", "p99_s"), ("longest", "longest_s")):
            yield (
                f"{name.replace('_', ' ')}: a short request while a tier grows, {what}, ms",
                f"{1000 * figures[f'growing_{key}']:.1f}",
                f"while it does not {1000 * figures[f'held_{key}']:.1f}",
                "",
            )
        least, most = min(figures["p99_ratios"]), max(figures["p99_ratios"])
        ratio = f"{figures['p99_ratio']:.3f} ({least:.3f} to {most:.3f})"
        yield f"{name.replace('_', ' ')}: the 99th percentiles' ratio, each life's", ratio, "", "1.05"
        yield (
            f"{name.replace('_', ' ')}: grown in a second, MB",
            f"{figures['bytes_per_s'] / 1e6:.0f}",
            "",
            "",
        )
    yield "at rest: grown in a second, MB", f"{growth['at_rest_bytes_per_s'] / 1e6:.0f}", "", ""


def _figures(lives: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    both = {side: [seconds for life in lives for seconds in life[side]] for side in _SIDES}
    figures = dict[str, Any]()
    for side, seconds in both.items():
        figures |= {
            f"{side}_s": median(seconds),
            f"{side}_p99_s": p99(seconds),
            f"{side}_longest_s": max(seconds),
        }
    return {
        "requests": len(both["growing"]),
        **figures,
        "p99_ratio": _p99_ratio(both),
        "p99_ratios": [_p99_ratio(life) for life in lives],
        "bytes_per_s": _rate(lives),
    }


def _rate(lives: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(life["bytes"] for life in lives) / sum(life["growing_s"] for life in lives))


def _p99_ratio(sides: Mapping[str, Any]) -> float:
    return p99(sides["growing"]) / p99(sides["held"])


@contextmanager
def _held() -> Iterator[None]:
    """Hold the tier; a call that is under way ends, which takes a millisecond."""
    with Path(os.environ[_HOLD]).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def while_nobody_holds() -> None:
    """Wait until nobody holds the tier."""
    with Path(os.environ[_HOLD]).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


class _Asking:
    """Asks an engine while its tier grows or is held."""

    def __init__(self, llm: Any) -> None:  # noqa: ANN401 - vLLM's
        from vllm import SamplingParams  # noqa: PLC0415 - only the child needs it

        self._llm = llm
        self._how = SamplingParams(
            temperature=0, max_tokens=_OUTPUT_TOKENS, ignore_eos=True, detokenize=False
        )
        self._numbers = random.Random(0)  # noqa: S311 - not for secrets

    def ask(self) -> float:
        """Return the seconds of a request."""
        prompt = [self._numbers.randrange(10, 16000) for _ in range(_PROMPT_TOKENS)]
        begun_s = time.perf_counter()
        self._llm.generate([{"prompt_token_ids": prompt}], self._how, use_tqdm=False)
        return time.perf_counter() - begun_s

    def grown_bytes(self) -> float:
        """Return what is there. Raises ConnectorError: all of it is."""
        with _held():
            self.ask()  # vLLM tells with steps only
        values = {metric.name: metric.value for metric in self._llm.get_metrics() if hasattr(metric, "value")}
        if not values[cpu_tier.GROWING]:
            raise ConnectorError("the tier is all there before the end: it has to be larger")
        return float(values[cpu_tier.CAPACITY_BYTES])

    def in_turns(self, pattern: _Pattern, sides: Sequence[str]) -> dict[str, Any]:
        """Return seconds of requests on both sides, and what the tier has grown in which time."""
        found: dict[str, list[float]] = {side: [] for side in sides}
        before, growing_s = self.grown_bytes(), 0.0
        for _ in range(pattern.turns):
            for side in sides:
                begun_s = time.monotonic()
                with _held() if side == "held" else nullcontext():
                    for _ in range(pattern.requests):
                        time.sleep(pattern.gap_s)
                        found[side].append(self.ask())
                growing_s += (time.monotonic() - begun_s) if side == "growing" else 0.0
        return {**found, "growing_s": growing_s, "bytes": self.grown_bytes() - before}


def main(arguments: Sequence[str]) -> None:
    """Serve one engine, as `bench_engine` asks it; ConnectorError as of `_Asking`."""
    answers, settings, given = int(arguments[0]), json.loads(arguments[1]), json.loads(arguments[2])
    with _held():
        asking = _Asking(make_llm(settings, given, {"enforce_eager": True}))
        for _ in range(_WARM_UP):
            asking.ask()

    def watched(question: Mapping[str, Any]) -> dict[str, Any]:
        sides = _SIDES if question["growing_first"] else _SIDES[::-1]
        return {name: asking.in_turns(pattern, sides) for name, pattern in _PATTERNS.items()}

    serve(answers, watched)


if __name__ == "__main__":
    main(sys.argv[1:])
