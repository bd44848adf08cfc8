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
from kvtier_common.tier import Tier
from kvtier_operator.planning.arguments.effects import effects_of
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE, storage_bytes
from kvtier_operator.planning.pod.engine_memory import BudgetLine
from kvtier_operator.planning.report.fields import shown_args, shown_env
from kvtier_operator.planning.report.lines import (
    IDLE_REASONS,
    REPORT_COLUMNS,
    STYLES,
    UNKNOWN,
    Paint,
    check_rows,
    cut,
    device_name,
    first_line,
    fold,
    painter,
    passes,
    readable,
    verdict,
)
from kvtier_operator.planning.units import ceil_div, count, size

_BAR_CELLS: Final = 16
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ARGUMENT_MARGIN: Final = 6
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
    columns = readable(columns)
    paint = painter(colour=colour)
    rows = check_rows(plan, paint, columns)
    environment.filters |= {style: _style_filter(paint, style) for style in STYLES}
    environment.filters |= {
        "size": size,
        "human": _human,
        "fold": fold,
        "fold_anywhere": textwrap.wrap,
        "cut": lambda text: cut(text, columns - _ARGUMENT_MARGIN),
        "compact": lambda value: json.dumps(value, separators=(",", ":")),
    }
    text = environment.get_template("report.txt.j2").render(
        plan=plan,
        columns=columns,
        exact=columns >= REPORT_COLUMNS,
        first_line=first_line(plan, source, paint),
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
        verdict=verdict(plan),
        # for the end, which is what a terminal shows of a long report
        passes=f"{passes(plan)}, {verdict(plan)} (at the top)" if verdict(plan) else passes(plan),
        loud=[row for row in rows if row.loud],
        passed=[row for row in rows if not row.loud],
        idle=", ".join(check.name for check in plan.checks if check.reason in IDLE_REASONS),
        unknown=", ".join(check.name for check in plan.checks if check.reason == UNKNOWN),
    )
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")) + "\n"


def bar(value: int, whole: int, cells: int = _BAR_CELLS) -> str:
    """A bar of block characters, `cells` wide where the value is the whole, to an eighth of a cell."""
    eighths = round(cells * 8 * value / whole) if whole else 0
    eighths = max(eighths, 1) if value else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _style_filter(paint: Paint, style: str) -> Callable[[object], str]:
    return lambda text: paint(str(text), style)


def _human(value: int, name: str) -> str:
    if "seconds" in name:
        return f"{count(value)} s"
    if "parameters" in name:
        return f"{count(round(value / 1e6))} M"
    if "bytes per token" in name:
        return f"{count(value)} B"
    return size(value) if "bytes" in name else count(value)


def _tier_rows(plan: Plan) -> list[tuple[str, ...]]:
    rows = []
    for tier_name in Tier:
        on_device = tier_name is Tier.GPU
        name, tier = device_name(plan) if on_device else tier_name.label, plan.tiers.by_tier.get(tier_name)
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
