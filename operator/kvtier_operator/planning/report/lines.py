"""What the whole report and the summary have in common: widths, styles, the first line and the checks."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_common.terminal.say import in_style
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first

REPORT_COLUMNS: Final = 100
"""Of the report where nothing else is asked for; with fewer it leaves out exact bytes."""
_LEAST_COLUMNS: Final = 80
_MOST_COLUMNS: Final = 120
MESSAGE_INDENT: Final = 29
UNKNOWN: Final = "Unknown"
"""Reason of what a plan cannot know."""
IDLE_REASONS: Final = {
    "NotLooked",
    "NotAskedFor",
    "NoDiskTier",
    "NoRemoteTier",
    "NoHostPath",
    "NoModelVolume",
    "NothingOnDevice",
    "NoPrefixes",
    "NoTenants",
}
"""Of what there is nothing to look at."""
# SGR parameters (ECMA-48, 8.3.117).
STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_MARKS: Final = {Outcome.PASS: ("✓", "green"), Outcome.WARN: ("!", "yellow"), Outcome.REJECT: ("✗", "red")}

Paint = Callable[[str, str], str]
"""Text in a style, by its name in `STYLES`."""


def readable(columns: int) -> int:
    """The terminal's columns, no fewer and no more than can be read."""
    return min(max(columns, _LEAST_COLUMNS), _MOST_COLUMNS)


def painter(*, colour: bool) -> Paint:
    """Paints only where colours are wanted."""

    def paint(text: str, style: str) -> str:
        return in_style(text, STYLES[style]) if colour and text.strip() else text

    return paint


def fold(text: str, columns: int) -> list[str]:
    """Lines of at most so many columns, longer words excepted; at least one."""
    return textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False) or [""]


def cut(text: str, columns: int) -> str:
    """What fits a line; the whole is in `-o json`."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def rule(text: str, columns: int, paint: Paint) -> str:
    """A heading over the whole width."""
    return f"{paint(text, 'bold')} {paint('─' * (columns - 1 - len(text)), 'dim')}"


def first_line(plan: Plan, source: str, paint: Paint) -> str:
    """Name, model, pods and backend; the file, where there are several."""
    resource = plan.resource
    parts = [paint(resource.metadata.name, "bold"), resource.spec.model.name, paint(_shape(plan), "dim")]
    return "  ".join((*parts, *([paint(source, "dim")] if source else [])))


def _shape(plan: Plan) -> str:
    engine, spec = plan.resource.spec.engine, plan.resource.spec
    pods = "pod" if spec.most_replicas == 1 else "pods"
    least, most = spec.least_replicas, spec.most_replicas
    ranks = f"TP {engine.tensor_parallel_size}"
    if engine.data_parallel_size > 1:
        ranks += f" x DP {engine.data_parallel_size}"
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"{number} {pods}, {engine.device}, {ranks}, backend {spec.backend}"


def device_name(plan: Plan) -> str:
    """What the device's own cache is called in rows of tiers."""
    return "gpu" if plan.resource.spec.engine.device is Device.GPU else "device"


def verdict(plan: Plan) -> str:
    """How many checks refuse and warn; empty where none does."""
    warnings = sum(check.outcome is Outcome.WARN for check in plan.checks)
    rejected = sum(check.outcome is Outcome.REJECT for check in plan.checks)
    return ", ".join(
        [
            *([f"{rejected} rejected"] if rejected else []),
            *([f"{warnings} to look at"] if warnings else []),
        ]
    )


def passes(plan: Plan) -> str:
    """How many are well, and how many cannot be known."""
    loud = sum(check.outcome is not Outcome.PASS for check in plan.checks)
    unknown = sum(check.reason == UNKNOWN for check in plan.checks)
    return f"{len(plan.checks) - loud - unknown} passed{f', {unknown} not known' if unknown else ''}"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check as it is shown."""

    mark: str  # painted
    name: str  # the check's
    lines: tuple[str, ...]  # what it says, folded and painted
    loud: bool  # whether somebody should do something about it


def check_rows(plan: Plan, paint: Paint, columns: int) -> list[CheckRow]:
    """Those that say something, the most important first."""
    return [
        _check_row(check, paint, columns - MESSAGE_INDENT)
        for check in most_important_first(plan.checks)
        if check.reason not in {*IDLE_REASONS, UNKNOWN}
    ]


def _check_row(check: CheckResult, paint: Paint, columns: int) -> CheckRow:
    mark, style = _MARKS[check.outcome]
    loud = check.outcome is not Outcome.PASS
    text = f"{check.reason} {check.field}: {check.message}" if loud else check.message
    lines = tuple(paint(line, style if loud else "dim") for line in fold(text, columns))
    return CheckRow(paint(mark, style), check.name, lines, loud)
