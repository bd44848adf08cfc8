"""Time to first token: cold, from the device's cache and from the tier, of each side."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from kvtier_connector.bench.choices import KVTIER, NONE, TITLES
from kvtier_connector.bench.comparison import PINNING_TIMEOUT_S, Comparison
from kvtier_connector.bench.engine import Answer, Ask, BenchEngine
from kvtier_connector.bench.measure import Row, Run

_HITS_PER_PROMPT: Final = 3
_PROMPTS_HELD: Final = 2  # by the device's cache, and by a tier that is not given
_SHORT: Final = Ask(seed=-1, prompt_tokens=256)
_FLUSH: Final = Ask(seed=-2, prompt_tokens=16, output_tokens=8)
"""Its steps begin the last stores, which come a step late, and learn that they have ended."""
_LONG_SEED: Final = -3
_ANSWER_TOKENS: Final = 64  # behind a prompt, at most

Answers = dict[str, list[Answer]]
"""By where they came from: cold, device_hit, cpu_tier."""


def compare_ttft(
    comparison: Comparison, *, prompt_tokens: int, repeats: int, log: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure every side in lives that take turns; in one turn all are asked the same prompts.

    No cache has seen a prompt before. `outputs_equal` says whether every prompt was answered with the same
    token from wherever a cache had it.
    """
    prompt_tokens = comparison.comparable_tokens(prompt_tokens)
    longest_tokens = prompt_tokens + _ANSWER_TOKENS
    settings = comparison.settings(
        device_tokens=_PROMPTS_HELD * longest_tokens, longest_tokens=longest_tokens
    )
    ready_s: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, Answers] = {side: defaultdict(list) for side in comparison.sides}
    warm: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for turn, side in comparison.order():
        with comparison.life(
            side,
            settings,
            tier_tokens=_PROMPTS_HELD * longest_tokens,
            log=log.with_suffix(f".{side}.{turn + 1}.log"),
        ) as engine:
            warm_up(engine, prompt_tokens)
            ready_s[side].append(engine.ready_s)
            for seed in range(turn * repeats, (turn + 1) * repeats):
                for kind, more in ask_prompt(engine, seed, prompt_tokens, tier=side != NONE).items():
                    answers[side][kind] += more
                    # Not the cold answer: in bfloat16 what is computed in other pieces rounds differently.
                    warm[seed] += [tuple(answer.tokens) for answer in more if kind != "cold"]
        last = ", ".join(f"{kind} {all_[-1].seconds:.3f} s" for kind, all_ in answers[side].items())
        say(
            f"ttft, turn {turn + 1} of {comparison.turns}, {side}: ready in {ready_s[side][-1]:.1f} s, {last}"
        )
    return {
        "device": comparison.device,
        "prompt_tokens": prompt_tokens,
        "repeats": repeats,
        "turns": comparison.turns,
        "sides": {side: side_figures(ready_s[side], answers[side]) for side in answers},
        "outputs_equal": all(len(set(tokens)) <= 1 for tokens in warm.values()),
    }


def warm_up(engine: BenchEngine, prompt_tokens: int) -> None:
    """Ask what is thrown away: a life's first prompts are slower, and kvtier page-locks while it serves."""
    for ask in (_SHORT, Ask(_LONG_SEED, prompt_tokens), _FLUSH):
        engine.run(ask)
    engine.rest(PINNING_TIMEOUT_S)


def ask_prompt(
    engine: BenchEngine, seed: int, prompt_tokens: int, *, tier: bool, output_tokens: int = 1
) -> Answers:
    """Ask one prompt that no cache has seen, and again from the device's cache and from the tier in turns."""
    hit = Ask(seed, prompt_tokens, output_tokens)
    again = replace(hit, forget=True)
    answers: Answers = {"cold": [engine.run(again)], "device_hit": []}
    engine.run(_FLUSH)
    engine.rest()
    for _ in range(_HITS_PER_PROMPT):
        answers["device_hit"].append(engine.run(hit))
        if tier:
            answers.setdefault("cpu_tier", []).append(engine.run(again))
    return answers


def side_figures(ready_s: Sequence[float], answers: Mapping[str, Sequence[Answer]]) -> dict[str, Any]:
    """Return a side's medians with their spread, of all its lives."""
    seconds = {kind: [answer.seconds for answer in values] for kind, values in answers.items()}
    medians = {kind: median(values) for kind, values in seconds.items()}
    figures: dict[str, Any] = {
        "ready_s": median(ready_s),
        **{f"{kind}_s": value for kind, value in medians.items()},
        "spread_s": {kind: [min(values), max(values)] for kind, values in seconds.items()},
        "cached_tokens": {kind: min(answer.cached for answer in values) for kind, values in answers.items()},
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
        comparison, prompt_tokens=run.prompt_tokens, repeats=run.repeats, log=run.log("ttft"), say=run.say
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
