"""`kvtier status`: one resource on one screen."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvtier_common.terminal.say import in_style
from kvtier_operator.cli.cluster.text.units import NONE, age, seconds, share
from kvtier_operator.cli.cluster.view.next_step import NextStep
from kvtier_operator.cli.cluster.view.pods import READY, PodRow
from kvtier_operator.cli.cluster.view.resource import ConditionRow, ResourceView
from kvtier_operator.cli.cluster.view.tiers import TierRow
from kvtier_operator.cli.text.table import table
from kvtier_operator.cli.text.terminal import cut, folded
from kvtier_operator.planning.units import count, many, size

_INDENT: Final = "  "
_MOST_PODS: Final = 12
"""Rows of pods, those in trouble first: a screen has 40 lines."""
_MARKS: Final = {"True": ("✓", "32"), "False": ("✗", "31"), "Unknown": ("?", "33")}


def status_screen(view: ResourceView, step: NextStep, columns: int, *, colour: bool = False) -> str:
    """The screen, as lines of at most so many columns, with a final newline.

    Args:
        view: The resource.
        step: What to do next.
        columns: Of the terminal.
        colour: Whether to write ANSI colours.
    """
    sections = (
        ("conditions", _conditions(view.conditions, columns, colour=colour)),
        ("pods", _pods(view.pods, columns)),
        (_tiers_title(view), _tiers(view, columns)),
        ("picker", _picker(view, columns)),
        ("not read", _paragraphs(view.unread, columns)),
        ("next", _next(step, columns)),
    )
    lines = [_title(view, columns)]
    for title, found in sections:
        if shown := list(found):
            lines += ["", cut(title, columns), *shown]
    return "\n".join(lines) + "\n"


def _title(view: ResourceView, columns: int) -> str:
    ready = f"{view.ready_replicas} of {many(view.replicas, 'engine')} ready"
    return cut(f"{view.namespace}/{view.name}  {view.model}  {view.backend}  {ready}", columns)


def _conditions(conditions: Sequence[ConditionRow], columns: int, *, colour: bool) -> Iterator[str]:
    """What is well takes a line; what is not, as many as it has to say."""
    width = max((len(each.type) for each in conditions), default=0)
    for each in conditions:
        mark, shade = _MARKS.get(each.status, _MARKS["Unknown"])
        start = f"{_INDENT}{in_style(mark, shade) if colour else mark} {each.type.ljust(width)}  "
        room = columns - len(_INDENT) - width - 4
        if each.status == "False":
            first, *rest = folded(f"{each.reason}: {each.message}", room)
            yield start + first
            yield from (" " * (columns - room) + line for line in rest)
        else:
            yield start + cut(" ".join(each.message.split()), room)


def _pods(pods: Sequence[PodRow], columns: int) -> Iterator[str]:
    rows = [
        (each.name, each.state, str(each.restarts), age(each.age_s), each.node or NONE)
        for each in sorted(pods, key=_is_well)[:_MOST_PODS]
    ]
    if rows:
        headings = ("name", "state", "restarts", "age", "node")
        room = columns - len(_INDENT)
        yield from _indented(table(headings, rows, room, text=("state", "node"), gives_way="node"))
    if rest := sorted(pods, key=_is_well)[_MOST_PODS:]:
        ready = sum(each.state == READY for each in rest)
        yield f"{_INDENT}and {many(len(rest), 'pod')} more, {ready:,} of them ready"


def _is_well(pod: PodRow) -> bool:
    return pod.state == READY


def _tiers_title(view: ResourceView) -> str:
    if not view.engines.engines:
        return "tiers of one engine, as far as its status tells"
    return f"tiers of {many(view.engines.engines, 'engine')}, since each started"


def _tiers(view: ResourceView, columns: int) -> Iterator[str]:
    if not view.tiers:
        return
    rows = [_tier(each) for each in view.tiers]
    if (found := view.engines.found_share) is not None:
        rows.append(("computed", NONE, NONE, NONE, share(max(1 - found, 0.0)), NONE))
    headings = ("tier", "capacity", "tokens", "filled", "hit rate", "saved")
    yield from _indented(table(headings, rows, columns - len(_INDENT)))


def _tier(row: TierRow) -> tuple[str, ...]:
    return (
        row.tier.label,
        NONE if row.capacity_bytes is None else size(row.capacity_bytes),
        NONE if row.capacity_tokens is None else count(row.capacity_tokens),
        share(row.filled),
        share(row.hit_rate),
        seconds(row.saved_s),
    )


def _picker(view: ResourceView, columns: int) -> Iterator[str]:
    """What it is configured to remember, what it believes, and where clients ask."""
    entries = ", ".join(
        f"{name.removesuffix('Prefix')} {entries:,}" for name, entries in view.entries.items() if entries
    )
    of = f" of {many(view.tokens_per_entry, 'token')} each" if view.tokens_per_entry else ""
    yield from _paragraph(f"{view.flavor}; prefix entries an engine: {entries or 'none'}{of}", columns)
    figures = view.picker
    if figures.known_engines is not None:
        yield from _paragraph(
            f"knows {many(figures.known_engines, 'engine')}, {figures.stale_engines or 0:,} of them without "
            f"a recent reading; {many(figures.picks or 0, 'request')} sent",
            columns,
        )
    if figures.believed_share is not None:
        found = view.engines.found_share
        yield from _paragraph(
            f"believed the engine it picked to hold {share(figures.believed_share)} of a prompt"
            + (f"; engines found {share(found)}" if found is not None else ""),
            columns,
        )
    if figures.index_share:
        full = ", ".join(f"{tier.label} {share(full)}" for tier, full in figures.index_share.items())
        yield from _paragraph(f"its index is full to: {full}", columns)
    if view.url:
        yield from _paragraph(f"clients ask {view.url}", columns)


def _next(step: NextStep, columns: int) -> Iterator[str]:
    """A command that is too long goes on in the next line, as a shell takes it."""
    yield from _paragraph(step.text, columns)
    if step.command:
        first, *rest = _command_lines(step.command, columns - 2 * len(_INDENT) - 2)
        yield f"{_INDENT}$ {first}"
        yield from (f"{3 * _INDENT}{line}" for line in rest)


def _command_lines(command: str, columns: int) -> list[str]:
    lines = [""]
    for word in command.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) + 2 > columns and lines[-1]:
            lines[-1] += " \\"
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _paragraphs(texts: Sequence[str], columns: int) -> Iterator[str]:
    for text in texts:
        yield from _paragraph(text, columns)


def _paragraph(text: str, columns: int) -> list[str]:
    return folded(text, columns, _INDENT)


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in lines)
