"""All that is compared, asked of one engine: an engine takes longer to start than to answer.

What `ttft` and `workloads` measure in engines of their own, and what only this measures: requests while the
tier is page-locked beside them, prompts that nobody asks again, and where the engine's time goes (py-spy).
`python -m` of this file is such an engine's process.
"""

import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from kvtier_common.benchmarks import Workload
from kvtier_common.metrics import cpu_tier
from kvtier_connector.bench import engine as engines
from kvtier_connector.bench import load
from kvtier_connector.bench.comparison import PINNING_TIMEOUT_S
from kvtier_connector.bench.engine import Answer, Ask, BenchEngine
from kvtier_connector.bench.load import RoundServed, Served
from kvtier_connector.bench.measure import p99
from kvtier_connector.bench.ttft import Answers, ask_prompt, side_figures, warm_up
from kvtier_connector.bench.workloads import ask_rounds, compared_figures

if TYPE_CHECKING:
    from vllm import LLM

_WATCHED_TOKENS: Final = 32  # of a prompt that is asked while a tier grows
_WATCHED_S: Final = 20.0  # a tier that still grows then does so at rest, and sooner
_FEWEST_WATCHED: Final = 100  # of which a 99th percentile says something
_PROFILED_S: Final = 5
_COMPARED_TOKENS: Final = 16  # of an answer that all sides are to give
_TURN_SEEDS: Final = 1_000  # no life of another turn asks the same prompts
_COMPARED_SEED: Final = 500  # the first of a turn whose answers are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one engine is asked."""

    prompt_tokens: int  # of prompts whose first token is waited for
    prompts: int  # of those
    compared: int  # prompts whose answers all sides give
    workloads: Mapping[str, Workload]  # by name, in this order
    rounds: Mapping[str, int]  # of each of them
    turn: int = 0  # lives of one turn are asked the same
    profile: Path | None = None  # for py-spy's samples, where it is installed


_Tokens = dict[str, list[list[int]]]  # of answers, by where their prompts came from


def live(engine: BenchEngine, asked: Asked, *, tier: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Ask an engine everything; returns seconds and tokens as they came, as JSON has them."""
    lived: dict[str, Any] = {"ready_s": engine.ready_s, "prompt_tokens": asked.prompt_tokens}
    lived["growth"] = _watch_growth(engine) if tier else None  # first of all: it begins with the engine
    warm_up(engine, asked.prompt_tokens)
    first = asked.turn * _TURN_SEEDS
    answers: Answers = defaultdict(list)
    for seed in range(first, first + asked.prompts):
        for kind, more in ask_prompt(engine, seed, asked.prompt_tokens, tier=tier).items():
            answers[kind] += more
    lived["ttft"] = {kind: [asdict(answer) for answer in more] for kind, more in answers.items()}
    lived["answers"] = [
        _compared(engine, first + _COMPARED_SEED + number, asked.prompt_tokens, tier=tier)
        for number in range(asked.compared)
    ]
    say(", ".join(f"{kind} {median(each.seconds for each in more):.3f} s" for kind, more in answers.items()))
    if asked.profile is not None and shutil.which("py-spy"):
        _profile(engine, Ask(first, asked.prompt_tokens), asked.profile)
    engine.rest(PINNING_TIMEOUT_S)
    lived["rounds"] = {}
    for name, workload in asked.workloads.items():
        served = ask_rounds(engine, name, workload, asked.rounds[name], asked.turn)
        lived["rounds"][name] = [asdict(one) for one in served]
        say(f"{name}: " + ", ".join(f"{one.seconds:.2f} s" for one in served))
    return lived


def _watch_growth(engine: BenchEngine) -> dict[str, Any]:
    """Ask short prompts while the tier grows, let it come to its end at rest, and ask as many again."""
    during = engine.exchange({"watch": _WATCHED_TOKENS})
    engine.rest(PINNING_TIMEOUT_S)
    afterwards = engine.exchange({"watch": _WATCHED_TOKENS, "requests": len(during["seconds"])})
    return {
        "took_s": during["took_s"],
        "growing": during["seconds"],
        "grown": afterwards["seconds"],
    }


def _compared(engine: BenchEngine, seed: int, prompt_tokens: int, *, tier: bool) -> _Tokens:
    answers = ask_prompt(engine, seed, prompt_tokens, tier=tier, output_tokens=_COMPARED_TOKENS)
    return {kind: [answer.tokens for answer in more] for kind, more in answers.items()}


def _profile(engine: BenchEngine, hit: Ask, path: Path) -> None:
    """Have py-spy look at an engine that serves device hits, whose time is the host's."""
    command = ["py-spy", "record", "--subprocesses", "--format", "raw", "--nonblocking"]
    command += ["--duration", str(_PROFILED_S), "--output", str(path), "--pid", str(engine.pid)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as profiler:  # noqa: S603 - our own words
        while profiler.poll() is None:
            engine.run(hit)


def report(
    lives: Mapping[str, Sequence[dict[str, Any]]],
    workloads: Mapping[str, Workload],
    *,
    token_bytes: int,
) -> dict[str, Any]:
    """Return what lives of every side come to: `ttft` and `workloads` as those parts report them, and more.

    Only turns that all sides have lived are in what is compared round by round.
    """
    turns = min(map(len, lives.values()))
    return {
        "ttft": {
            "prompt_tokens": next(life["prompt_tokens"] for each in lives.values() for life in each),
            "turns": {side: len(each) for side, each in lives.items()},
            "sides": {side: _first_tokens(each) for side, each in lives.items()},
            "outputs_differing": count_differing([_answers_of(each[:turns]) for each in lives.values()]),
        },
        "workloads": {
            name: compared_figures(
                workload, {side: _rounds(name, each[:turns]) for side, each in lives.items()}, token_bytes
            )
            for name, workload in workloads.items()
        },
        "growth": {side: _growth(each) for side, each in lives.items()},
    }


def count_differing(sides: Sequence[Sequence[_Tokens]]) -> int:
    """Return how many prompts were not answered with the same tokens from every cache of every side.

    Not the cold answers: in bfloat16 what is computed in other pieces rounds differently.
    """
    return sum(len(set().union(*map(_warm, answers))) > 1 for answers in zip(*sides, strict=True))


def _warm(answers: _Tokens) -> set[tuple[int, ...]]:
    return {tuple(tokens) for kind, more in answers.items() if kind != "cold" for tokens in more}


def _answers_of(lives: Iterable[Mapping[str, Any]]) -> list[_Tokens]:
    return [answer for life in lives for answer in life["answers"]]


def _first_tokens(lives: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answers: dict[str, list[Answer]] = defaultdict(list)
    for life in lives:
        for kind, more in life["ttft"].items():
            answers[kind] += [Answer(**each) for each in more]
    return side_figures([life["ready_s"] for life in lives], answers)


def _rounds(name: str, lives: Iterable[Mapping[str, Any]]) -> list[RoundServed]:
    return [
        RoundServed(**one | {"requests": [Served(**request) for request in one["requests"]]})
        for life in lives
        for one in life["rounds"][name]
    ]


def _growth(lives: Iterable[Mapping[str, Any]]) -> dict[str, float] | None:
    """Seconds of requests beside a tier that grows, and as many afterwards; None where too few were asked."""
    seen = [life["growth"] for life in lives if life["growth"]]
    during, afterwards = ([s for each in seen for s in each[name]] for name in ("growing", "grown"))
    if len(during) < _FEWEST_WATCHED:
        return None
    return {
        "took_s": median(each["took_s"] for each in seen),
        "requests": len(during),
        "growing_p99_s": p99(during),
        "grown_p99_s": p99(afterwards),
        "p99_ratio": p99(during) / p99(afterwards),
        "median_ratio": median(during) / median(afterwards),
    }


def answer(llm: "LLM", question: dict[str, Any]) -> dict[str, Any]:
    """Run whatever an engine of this module is asked, as JSON has it, in the engine's process."""
    if "watch" in question:
        return _watch(llm, int(question["watch"]), question.get("requests"))
    return load.answer_any(llm, question)


def _watch(llm: "LLM", prompt_tokens: int, requests: int | None) -> dict[str, Any]:
    """Ask short prompts, one after another: so many, or while the tier grows."""
    first = 1 << 40 if requests is None else 1 << 41

    def ask(number: int) -> float:
        one = Ask(seed=-first - number, prompt_tokens=prompt_tokens)
        return float(engines.answer(llm, asdict(one))["seconds"])

    def growing() -> bool:
        return any(metric.value for metric in llm.get_metrics() if metric.name == cpu_tier.GROWING)

    ask(0)  # a life's first is slower
    begun_s, seconds = time.monotonic(), list[float]()
    while (
        growing() and time.monotonic() - begun_s < _WATCHED_S if requests is None else len(seconds) < requests
    ):
        seconds.append(ask(len(seconds) + 1))
    return {"took_s": time.monotonic() - begun_s, "seconds": seconds}


if __name__ == "__main__":
    pipe, own_llm = engines.start_llm(sys.argv[1:])
    engines.serve(pipe, partial(answer, own_llm))
