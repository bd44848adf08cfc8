"""The sizing report that a person reads and can check by hand."""

import json
import shlex
import textwrap
from collections.abc import Callable
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.one_line import shell_word
from kvtier_common.terminal.say import in_style
from kvtier_common.tier import Tier
from kvtier_operator.planning.arguments.effects import effects_of
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE, storage_bytes
from kvtier_operator.planning.pod.engine_memory import BudgetLine
from kvtier_operator.planning.report.fields import shown_args, shown_env
from kvtier_operator.planning.units import ceil_div, count, size
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first

_BAR_CELLS: Final = 16
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
REPORT_COLUMNS: Final = 100
"""Of the report where nothing else is asked for; with fewer it leaves out exact bytes."""
_LEAST_COLUMNS: Final = 80
_MOST_COLUMNS: Final = 120
_ARGUMENT_MARGIN: Final = 6
_MESSAGE_INDENT: Final = 29
_UNKNOWN: Final = "Unknown"
_IDLE_REASONS: Final = {
    "NotLooked",
    "NotAskedFor",
    "NoDiskTier",
    "NoRemoteTier",
    "NoHostPath",
    "NoModelVolume",
    "NothingOnDevice",
}
# SGR parameters (ECMA-48, 8.3.117).
_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_MARKS: Final = {Outcome.PASS: ("✓", "green"), Outcome.WARN: ("!", "yellow"), Outcome.REJECT: ("✗", "red")}
_GEOMETRY_FIGURES: Final = {
    "KV bytes per token",
    "KV bytes per token and rank",
    "bytes per cached prefix",
    "weights bytes",
    "active parameters",
}


def explain(plan: Plan, *, colour: bool = False, source: str = "", columns: int = REPORT_COLUMNS) -> str:
    """The report of one plan.

    Args:
        plan: The plan.
        colour: Whether to paint it, as `kvtier_common.terminal.say` makes colours of.
        source: The resource's file, where there are several.
        columns: Of the terminal; the report has 80 to 120, longer words excepted.

    Returns:
        Lines of text with a final newline.
    """
    environment = Environment(
        loader=PackageLoader("kvtier_operator.planning.report", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - text for a terminal, not HTML
    )
    columns = min(max(columns, _LEAST_COLUMNS), _MOST_COLUMNS)
    paint = _painter(colour=colour)
    rows = _check_rows(plan, paint, columns - _MESSAGE_INDENT)
    environment.filters |= {style: _style_filter(paint, style) for style in _STYLES}
    environment.filters |= {
        "size": size,
        "human": _human,
        "fold": _fold,
        "fold_anywhere": textwrap.wrap,
        "cut": lambda text: _cut(text, columns - _ARGUMENT_MARGIN),
        "compact": lambda value: json.dumps(value, separators=(",", ":")),
    }
    text = environment.get_template("report.txt.j2").render(
        plan=plan,
        columns=columns,
        exact=columns >= REPORT_COLUMNS,
        summary=_summary(plan),
        file=source,
        geometry=[figure for figure in plan.figures if figure.name in _GEOMETRY_FIGURES],
        figures=[figure for figure in plan.figures if figure.name not in _GEOMETRY_FIGURES],
        tiers=_tier_rows(plan),
        limit=size(sum(line.bytes for line in plan.budget.memory)),
        memory=_rows(plan.budget.memory),
        storage=_rows(plan.budget.storage),
        storage_bytes=storage_bytes(plan.budget.storage),
        volumes=(*((plan.weights,) if plan.weights else ()), *plan.engine.mounts),
        resources=_resources(plan),
        options=[*effects_of(plan.resource.spec.engine.extra_args)],
        arguments=_fold_arguments(shown_args(plan), columns - _ARGUMENT_MARGIN),
        env=shown_env(plan),
        picker=_picker_rows(plan),
        entries=_entry_rows(plan),
        verdict=_verdict(plan),
        passes=_passes(plan),
        loud=[row for row in rows if row["loud"]],
        passed=[row for row in rows if not row["loud"]],
        idle=", ".join(check.name for check in plan.checks if check.reason in _IDLE_REASONS),
        unknown=", ".join(check.name for check in plan.checks if check.reason == _UNKNOWN),
    )
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")) + "\n"


def bar(value: int, whole: int, cells: int = _BAR_CELLS) -> str:
    """A bar of block characters, `cells` wide where the value is the whole, to an eighth of a cell."""
    eighths = round(cells * 8 * value / whole) if whole else 0
    eighths = max(eighths, 1) if value else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _painter(*, colour: bool) -> Callable[[str, str], str]:
    def paint(text: str, style: str) -> str:
        return in_style(text, _STYLES[style]) if colour and text.strip() else text

    return paint


def _style_filter(paint: Callable[[str, str], str], style: str) -> Callable[[object], str]:
    return lambda text: paint(str(text), style)


def _fold(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False) or [""]


def _cut(text: str, columns: int) -> str:
    """What fits a line; the whole is in `-o json`."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def _human(value: int, name: str) -> str:
    if "seconds" in name:
        return f"{count(value)} s"
    if "parameters" in name:
        return f"{count(round(value / 1e6))} M"
    if "bytes per token" in name:
        return f"{count(value)} B"
    return size(value) if "bytes" in name else count(value)


def _summary(plan: Plan) -> str:
    engine, spec = plan.resource.spec.engine, plan.resource.spec
    pods = "pod" if spec.most_replicas == 1 else "pods"
    least, most = spec.least_replicas, spec.most_replicas
    ranks = f"TP {engine.tensor_parallel_size}"
    if engine.data_parallel_size > 1:
        ranks += f" x DP {engine.data_parallel_size}"
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"{number} {pods}, {engine.device}, {ranks}, backend {spec.backend}"


def _tier_rows(plan: Plan) -> list[tuple[str, ...]]:
    device = "gpu" if plan.resource.spec.engine.device == "cuda" else "device"
    rows = []
    for tier_name in Tier:
        on_device = tier_name is Tier.GPU
        name, tier = device if on_device else tier_name.label, plan.tiers.by_tier.get(tier_name)
        if tier is None and tier_name.shared:
            continue
        rows.append(_tier_row(name, tier) if tier else (name, *("?" if on_device else "-",) * 4, "-"))
    return rows


def _tier_row(name: str, tier: TierPlan) -> tuple[str, ...]:
    pages = f"{count(tier.hugepages.pages)} x {size(tier.hugepages.page_bytes)}" if tier.hugepages else "-"
    per_rank = size(tier.bytes_per_rank) if tier.bytes_per_rank else "-"
    return (name, size(tier.capacity_bytes), count(tier.capacity_bytes), per_rank, count(tier.tokens), pages)


def _rows(lines: tuple[BudgetLine, ...]) -> list[dict[str, Any]]:
    whole = sum(line.bytes for line in lines)
    return [
        {"what": line.what, "bytes": line.bytes, "bar": bar(line.bytes, whole), "why": line.why}
        for line in lines
    ]


def _resources(plan: Plan) -> list[tuple[str, str]]:
    """Those that have no lines of their own."""
    both = {**plan.budget.requests, **plan.budget.limits}
    claims = [
        (f"claim {claim.name}", claim.resource_claim_template_name or claim.resource_claim_name or "")
        for claim in plan.resource.spec.engine.resource_claims
    ]
    amounts = [(name, value) for name, value in both.items() if name not in {"memory", EPHEMERAL_STORAGE}]
    return amounts + claims


def _fold_arguments(arguments: tuple[str, ...], columns: int) -> list[str]:
    """The command in lines that fit, still one command to a shell; JSON is laid out over several."""
    options: list[str] = []
    for argument in arguments:
        word = _quote(argument)
        if argument.startswith("-") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    lines = ["vllm serve"]
    for option in options:
        last = lines[-1].splitlines()[-1]
        if len(last) + len(option.splitlines()[0]) + 3 > columns or "\n" in option:
            lines[-1] += " \\"
            lines.append(f"  {option}")
        else:
            lines[-1] += f" {option}"
    return [row for line in lines for row in line.splitlines()]


def _quote(argument: str) -> str:
    try:
        laid_out = json.dumps(parse_json_object(argument), indent=2).replace("\n", "\n  ")
    except MalformedError:
        return shell_word(argument)
    return shlex.quote(laid_out)


def _picker_rows(plan: Plan) -> list[tuple[str, str, str]]:
    """What the picker's pods ask for; what the index takes is a request's or a limit's part."""
    resources, pods = plan.router.resources, plan.resource.spec.router.replicas
    full = f"{size(resources.memory_bytes)} with a full index"
    return [
        ("picker pods", count(pods), ""),
        *((f"picker {name} request", value, "") for name, value in resources.requests.items()),
        *(
            (f"picker {name} limit", value, full if name == "memory" else "")
            for name, value in resources.limits.items()
        ),
    ]


def _entry_rows(plan: Plan) -> list[tuple[str, str, str]]:
    router = plan.router
    rows = []
    for tier_name, tier in plan.tiers.by_tier.items():
        value = router.entries.get(tier_name)
        if value is not None:
            division = f"{count(tier.tokens)} tokens / {router.tokens_per_entry} tokens an entry"
            exact = value == ceil_div(tier.tokens, router.tokens_per_entry)
            how = f"ceil({division})" if exact else "fixed by this picker, whatever the tier"
            rows.append((f"{tier_name.label} prefix entries", count(value), how))
    if router.gpu_from_metrics:
        rows.insert(0, ("gpu prefix entries", "-", "from the engine's metrics after start"))
    return rows


def _verdict(plan: Plan) -> str:
    warnings = sum(check.outcome is Outcome.WARN for check in plan.checks)
    rejected = sum(check.outcome is Outcome.REJECT for check in plan.checks)
    return ", ".join(
        [
            *([f"{rejected} rejected"] if rejected else []),
            *([f"{warnings} to look at"] if warnings else []),
        ]
    )


def _passes(plan: Plan) -> str:
    """For the end, which is what a terminal shows of a long report."""
    loud = sum(check.outcome is not Outcome.PASS for check in plan.checks)
    unknown = sum(check.reason == _UNKNOWN for check in plan.checks)
    passed = f"{len(plan.checks) - loud - unknown} passed{f', {unknown} not known' if unknown else ''}"
    return f"{passed}, {_verdict(plan)} (at the top)" if loud else passed


def _check_rows(plan: Plan, paint: Callable[[str, str], str], columns: int) -> list[dict[str, Any]]:
    return [
        _check_row(check, paint, columns)
        for check in most_important_first(plan.checks)
        if check.reason not in {*_IDLE_REASONS, _UNKNOWN}
    ]


def _check_row(check: CheckResult, paint: Callable[[str, str], str], columns: int) -> dict[str, Any]:
    mark, style = _MARKS[check.outcome]
    loud = check.outcome is not Outcome.PASS
    text = f"{check.reason} {check.field}: {check.message}" if loud else check.message
    lines = [paint(line, style if loud else "dim") for line in _fold(text, columns)]
    return {"mark": paint(mark, style), "name": check.name, "lines": lines, "loud": loud}
