"""Time to first token: cold, from the device's cache and from the tier, of each side."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_connector.bench.choices import KVTIER, NONE, TITLES
from kvtier_connector.bench.comparison import PINNING_TIMEOUT_S, Comparison, Life, life, log_of, tokens_differ
from kvtier_connector.bench.engine import Answer, Ask, BenchEngine
from kvtier_connector.bench.part import Row, Run

_HITS_PER_PROMPT: Final = 3
_PROMPTS_HELD: Final = 2
"""By the device's cache, and by a tier that is not given."""
_SHORT: Final = Ask(seed=-1, prompt_tokens=256)
_FLUSH: Final = Ask(seed=-2, prompt_tokens=16, output_tokens=8)
"""Its steps begin the last stores, which come a step late, and learn that they have ended."""
_LONG_SEED: Final = -3
_ANSWER_TOKENS: Final = 64
"""Room behind a prompt."""


@dataclass(slots=True)
class _Found:
    """Of one side: seconds until it was ready in each life, and its answers by where they came from."""

    ready_s: list[float] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))


def compare_ttft(
    comparison: Comparison, *, prompt_tokens: int, repeats: int, log: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure every side in lives that take turns; in one turn all are asked the same prompts.

    Args:
        comparison: the sides.
        prompt_tokens: length of the prompts.
        repeats: prompts of each life, none of which a cache has seen.
        log: files for the engines' output; each adds its suffix.
        say: is told how far it is.

    Returns:
        For each side medians and spreads in seconds and the fewest cached tokens; whether every prompt was
        answered with the same token from wherever a cache had it.

    Raises:
        ConnectorError: an engine died.
    """
    longest_tokens = prompt_tokens + _ANSWER_TOKENS
    settings = comparison.settings(
        device_tokens=_PROMPTS_HELD * longest_tokens, longest_tokens=longest_tokens
    )
    transfers = comparison.transfers(_PROMPTS_HELD * longest_tokens)
    found = {side: _Found() for side in comparison.sides}
    warm: dict[int, list[list[int]]] = defaultdict(list)
    for turn, side in comparison.order():
        with life(settings, transfers[side], given=comparison.given, log=log_of(log, side, turn)) as running:
            _warm_up(running, prompt_tokens)
            found[side].ready_s.append(running.ready_s)
            for seed in range(turn * repeats, (turn + 1) * repeats):
                answers = _ask(running.engine, seed, prompt_tokens, tier=side != NONE)
                for kind, each in answers.items():
                    found[side].answers[kind] += each
                    # Not the cold answer: in bfloat16 what is computed in other pieces rounds differently.
                    warm[seed] += [answer.tokens for answer in each if kind != "cold"]
        say(f"ttft, turn {turn + 1} of {comparison.turns}, {side}: {_shortly(found[side])}")
    return {
        "device": comparison.device,
        "prompt_tokens": prompt_tokens,
        "repeats": repeats,
        "turns": comparison.turns,
        "sides": {side: _figures(each) for side, each in found.items()},
        "outputs_equal": not any(map(tokens_differ, warm.values())),
    }


def _warm_up(running: Life, prompt_tokens: int) -> None:
    """The first prompts of a life are slower; and kvtier page-locks its memory while it already serves."""
    for ask in (_SHORT, Ask(_LONG_SEED, prompt_tokens), _FLUSH):
        running.engine.run(ask)
    running.engine.rest(PINNING_TIMEOUT_S)


def _ask(engine: BenchEngine, seed: int, prompt_tokens: int, *, tier: bool) -> dict[str, list[Answer]]:
    hit, again = Ask(seed, prompt_tokens), Ask(seed, prompt_tokens, forget=True)
    answers: dict[str, list[Answer]] = {"cold": [engine.run(again)], "device_hit": []}
    engine.run(_FLUSH)
    engine.rest()
    for _ in range(_HITS_PER_PROMPT):
        answers["device_hit"].append(engine.run(hit))
        if tier:
            answers.setdefault("cpu_tier", []).append(engine.run(again))
    return answers


def _shortly(found: _Found) -> str:
    times = (f"{kind} {each[-1].seconds:.3f} s" for kind, each in found.answers.items())
    return f"ready in {found.ready_s[-1]:.1f} s, {', '.join(times)}"


def _figures(found: _Found) -> dict[str, Any]:
    seconds = {kind: [answer.seconds for answer in each] for kind, each in found.answers.items()}
    medians = {kind: median(each) for kind, each in seconds.items()}
    figures: dict[str, Any] = {
        "ready_s": median(found.ready_s),
        **{f"{kind}_s": value for kind, value in medians.items()},
        "spread_s": {kind: [min(each), max(each)] for kind, each in seconds.items()},
        "cached_tokens": {
            kind: min(answer.cached for answer in each) for kind, each in found.answers.items()
        },
    }
    if "cpu_tier" in medians:
        figures |= {
            "over_device_hit": medians["cpu_tier"] / medians["device_hit"],
            "speedup": medians["cold"] / medians["cpu_tier"],
        }
    return figures


def measure(run: Run) -> dict[str, Any]:
    """Measure all sides on a GPU; on a CPU, which takes long for a cold prompt, kvtier alone in one life."""
    comparison = Comparison.of(run)
    if not run.gpu:
        comparison = replace(comparison, sides=(KVTIER,), turns=1)
    return compare_ttft(
        comparison,
        prompt_tokens=run.prompt_tokens,
        repeats=run.repeats,
        log=run.log("ttft"),
        say=run.say,
    )


def rows(ttft: dict[str, Any]) -> list[Row]:
    """Return rows of what `measure` returns."""
    lives = f"{ttft['turns']} lives of each side, {ttft['repeats']} prompts in each"
    equal = f"outputs equal: {ttft['outputs_equal']}"
    table: list[Row] = [(f"TTFT, {ttft['prompt_tokens']} tokens, {ttft['device']}", equal, lives, "")]
    for side, figures in ttft["sides"].items():
        beside = f"device hit {figures['device_hit_s'] * 1e3:.1f} ms, ready in {figures['ready_s']:.1f} s"
        cold = f"cold {figures['cold_s'] * 1e3:.0f} ms"
        if side == NONE:
            table.append((f"  {TITLES[side]}", cold, beside, ""))
            continue
        low, high = (seconds * 1e3 for seconds in figures["spread_s"]["cpu_tier"])
        tier = f"from the tier {figures['cpu_tier_s'] * 1e3:.1f} ms ({low:.1f} to {high:.1f})"
        table.append((f"  {TITLES[side]}", tier, f"{cold}, {beside}", ""))
    return table
