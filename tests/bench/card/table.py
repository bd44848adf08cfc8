"""A run's figures as Markdown: what goes into the page of figures, and what was kept of what was promised."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from tests.bench.card.kinds import KINDS
from tests.bench.card.results import all_equal, dma_s, is_compared, verdicts
from tests.bench.card.settings import CUDA, HIGH, LOW, NEW, Settings

from kvtier_connector.bench.choices import TITLES

_WITHOUT: Final = "-"


def page(
    settings: Settings, about: Mapping[str, str], figures: Mapping[str, Any], samples: Mapping[str, str]
) -> str:
    """Return the whole text.

    Args:
        settings: What was asked for.
        about: The machine and versions, by what they are.
        figures: Of `results`.
        samples: Of py-spy, by side.
    """
    model = (
        f"Model of {settings.shape}'s sizes, random weights, {figures['token_bytes']:,} bytes of KV a token"
    )
    parts = [
        ", ".join(f"{name} {value}" for name, value in about.items()),
        f"{model}; as planned: `{' '.join(settings.arguments)}`.",
        "\n".join(_sides(settings, figures)),
        "\n".join(_copies(figures)),
        "\n".join(_kinds(figures)),
        "\n".join(_verdicts(figures)) if settings.device == CUDA else "A CPU keeps no promise of a card's.",
        *(_profile(side, text) for side, text in samples.items()),
        "\n".join(_missing(figures)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sides(settings: Settings, figures: Mapping[str, Any]) -> Iterator[str]:
    if "ttft" not in figures:
        return
    equal = "equal" if is_compared(figures) else "one side only, nothing to compare with"
    equal = equal if all_equal(figures) else "NOT EQUAL"
    copy_s = dma_s(figures)
    copied = "" if copy_s is None else f" One copy of what kvtier loads takes {_ms(copy_s)} ms."
    yield (
        f"ms to the first token of {figures['ttft']['prompt_tokens']:,}, medians (and range); outputs on all "
        f"sides: **{equal}**.{copied}\n"
    )
    shapes = ", ".join(_shape(settings, name) for name in (LOW, HIGH, NEW))
    yield f"Workloads, s a round and mean s to the first token: {shapes}.\n"
    heads = ["", "lives", "ready, s", "cold", "device hit", "from the tier", "low cache", "high cache"]
    yield from _head([*heads, "tokens/s", "new prompts", "p99 while locking"])
    for side, first in figures["ttft"]["sides"].items():
        growth = figures["growth"].get(side)
        high = figures["workloads"][HIGH]["sides"][side]["total_tokens_per_s"]["median"]
        yield _row(
            [
                TITLES[side],
                str(figures["ttft"]["turns"][side]),
                f"{first['ready_s']:.1f}",
                *(_range(first, kind) for kind in ("cold", "device_hit", "cpu_tier")),
                _round(figures, LOW, side),
                _round(figures, HIGH, side),
                f"{high:,.0f}",
                _round(figures, NEW, side),
                f"{growth['p99_ratio']:.2f} times afterwards" if growth else _WITHOUT,
            ]
        )


def _shape(settings: Settings, name: str) -> str:
    one = settings.workloads[name]
    title, questions = name.replace("_", " "), one.prompts_per_group
    return f"{title} {one.groups} x {one.system_tokens:,} tokens, {questions} questions each"


def _range(first: Mapping[str, Any], kind: str) -> str:
    if f"{kind}_s" not in first:
        return _WITHOUT
    low, high = first["spread_s"][kind]
    return f"{_ms(first[f'{kind}_s'])} ({_ms(low)} to {_ms(high)})"


def _round(figures: Mapping[str, Any], name: str, side: str) -> str:
    wall_s = median(figures["round_s"][name][side])
    sides = figures["workloads"][name]["sides"]
    return f"{wall_s:.2f}; {sides[side]['mean_ttft_s']['median']:.3f}"


def _copies(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures["copies"]:
        return
    first = figures["copies"][0]
    yield f"Copies of random blocks, memory {first['region']}, {first['pinned']}:\n"
    yield from _head(["KiB", "direction", "GB/s", "one copy, GB/s", "of that", "by vLLM's kernel"])
    for row in figures["copies"]:
        direction = row["direction"].replace("_", " ")
        rates = [f"{row['kvtier_gbps']:.1f}", f"{row['peak_gbps']:.1f}", f"{row['over_peak']:.2f}"]
        kernel = f"{row['kernel_gbps']:.1f}" if "kernel_gbps" in row else ""
        yield _row([str(row["block_kib"]), direction, *rates, kernel])


def _kinds(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures["kinds"]:
        return
    yield "Kinds of models, kvtier as planned:\n"
    yield from _head(["", "cold", "device hit", "from the tier", "tokens found", "hit and tier", "as cold"])
    for name, kind in figures["kinds"].items():
        yield _row(
            [
                KINDS[name].title,
                *(_range(kind, each) for each in ("cold", "device_hit", "cpu_tier")),
                f"{kind['cached_tokens']['cpu_tier']:,}",
                "differ" if kind["outputs_differing"] else "equal",
                "yes" if kind["as_cold"] else "no",
            ]
        )


def _verdicts(figures: Mapping[str, Any]) -> Iterator[str]:
    yield from _head(["Promise", "measured", "limit", ""])
    for one in verdicts(figures):
        measured = _WITHOUT if one.measured is None else f"{one.measured:.3f}"
        yield _row([one.what, measured, f"{'>=' if one.at_least else '<='} {one.limit:g}", one.outcome])


def busiest(samples: str, most: int = 10) -> list[tuple[str, float]]:
    """Return the functions in which most samples of py-spy's raw form ended, with their share of all."""
    ended = Counter[str]()
    for line in samples.splitlines():
        stack, _, count = line.rpartition(" ")
        ended[stack.rpartition(";")[2]] += int(count)
    return [(name, count / ended.total()) for name, count in ended.most_common(most)]


def _profile(side: str, samples: str) -> str:
    functions = "; ".join(f"{name} {share:.0%}" for name, share in busiest(samples))
    return f"Where {TITLES[side]} serves device hits, samples end in: {functions}."


def _missing(figures: Mapping[str, Any]) -> Iterator[str]:
    for name, why in figures["not_there"].items():
        yield f"- `{name}`: {why}"
    if figures["left_out"]:
        names = ", ".join(f"`{name}`" for name in figures["left_out"])
        yield f"- left out, for want of time: {names}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


def _head(cells: Sequence[str]) -> tuple[str, str]:
    return _row(cells), _row(["---"] * len(cells))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
