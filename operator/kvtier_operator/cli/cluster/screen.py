"""Figures as a person reads them; a dash where there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from kvtier_common.terminal.say import in_style, json_document
from kvtier_common.tier import Tier
from kvtier_operator.cli.cluster.next_step import NextStep, next_step
from kvtier_operator.cli.cluster.resource import READY, ConditionRow, PodRow, ResourceView, TierRow
from kvtier_operator.cli.cluster.shares import TenantRow, shares_fields
from kvtier_operator.cli.text import cut, fold, table
from kvtier_operator.planning.units import count, many, size

NONE: Final = "-"
_AGES: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_EXACT_S: Final = 10.0


def share(value: float | None) -> str:
    """A share from 0 to 1, such as `41.3%`."""
    return NONE if value is None else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """Seconds, with a digit after the point where there are few."""
    if value is None:
        return NONE
    return f"{value:,.1f} s" if abs(value) < _EXACT_S else f"{value:,.0f} s"


def age(value_s: float) -> str:
    """How long ago, in the largest unit of which it has one, as kubectl writes it."""
    for factor, suffix in _AGES:
        if value_s >= factor:
            return f"{int(value_s // factor)}{suffix}"
    return f"{int(max(value_s, 0))}s"


_INDENT: Final = "  "
_MOST_PODS: Final = 12
"""Rows of pods, those in trouble first: a screen has 40 lines."""
_MARKS: Final = {"True": ("✓", "32"), "False": ("✗", "31"), "Unknown": ("?", "33")}


def status_screen(view: ResourceView, step: NextStep, columns: int, *, colour: bool = False) -> str:
    """The screen, as lines of at most so many columns, with a final newline."""
    sections = (
        ("conditions", _conditions(view.conditions, columns, colour=colour)),
        ("pods", _pods(view.pods, columns)),
        (_tiers_title(view), _tiers(view, columns)),
        ("prefixes", _prefixes(view, columns)),
        ("tenants, since each engine started", _tenants(view, columns)),
        ("picker", () if view.is_attached and not view.config_map else _picker(view, columns)),
        ("not read", (line for text in view.unread for line in _paragraph(text, columns))),
        ("next", _next(step, columns)),
    )
    lines = [_title(view, columns)]
    for title, section in sections:
        if shown := list(section):
            lines += ["", cut(title, columns), *shown]
    return "\n".join(lines) + "\n"


def _title(view: ResourceView, columns: int) -> str:
    ready = f"{view.ready_replicas} of {many(view.replicas, 'engine')} ready"
    if view.is_attached:
        ready = f"{view.ready_replicas} of {many(view.replicas, 'pod')} attached"
    parts = (f"{view.namespace}/{view.name}", view.model, view.backend, ready)
    return cut("  ".join(filter(None, parts)), columns)


def _conditions(conditions: Sequence[ConditionRow], columns: int, *, colour: bool) -> Iterator[str]:
    """What is well takes a line; what is not, as many as it has to say."""
    width = max((len(condition.type) for condition in conditions), default=0)
    for condition in conditions:
        mark, shade = _MARKS.get(condition.status, _MARKS["Unknown"])
        start = f"{_INDENT}{in_style(mark, shade) if colour else mark} {condition.type.ljust(width)}  "
        columns_left = columns - len(_INDENT) - width - 4
        if condition.status == "False":
            first, *rest = fold(f"{condition.reason}: {condition.message}", columns_left)
            yield start + first
            yield from (" " * (columns - columns_left) + line for line in rest)
        else:
            yield start + cut(" ".join(condition.message.split()), columns_left)


def _pods(pods: Sequence[PodRow], columns: int) -> Iterator[str]:
    rows = [
        (pod.name, pod.state, str(pod.restarts), age(pod.age_s), pod.node or NONE)
        for pod in sorted(pods, key=_is_well)[:_MOST_PODS]
    ]
    if rows:
        headings = ("name", "state", "restarts", "age", "node")
        columns_left = columns - len(_INDENT)
        yield from _indent(table(headings, rows, columns_left, text=("state", "node"), gives_way="node"))
    if rest := sorted(pods, key=_is_well)[_MOST_PODS:]:
        ready = sum(pod.state == READY for pod in rest)
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
    rows = [_tier(tier) for tier in view.tiers]
    if (found_share := view.engines.found_share) is not None:
        rows.append(("computed", NONE, NONE, NONE, share(max(1 - found_share, 0.0)), NONE))
    headings = ("tier", "capacity", "tokens", "filled", "hit rate", "saved")
    yield from _indent(table(headings, rows, columns - len(_INDENT)))


def _tier(row: TierRow) -> tuple[str, ...]:
    return (
        row.tier.label,
        NONE if row.capacity_bytes is None else size(row.capacity_bytes),
        NONE if row.capacity_tokens is None else count(row.capacity_tokens),
        share(row.filled),
        share(row.hit_rate),
        seconds(row.saved_s),
    )


def _prefixes(view: ResourceView, columns: int) -> Iterator[str]:
    rows = [
        (prefix.name, NONE if prefix.tokens is None else count(prefix.tokens), share(prefix.cached_share))
        for prefix in view.shares.prefixes
    ]
    if rows:
        yield from _indent(table(("prefix", "tokens", "cached"), rows, columns - len(_INDENT)))


def _tenants(view: ResourceView, columns: int) -> Iterator[str]:
    if view.shares.tenants:
        rows = [_tenant(tenant) for tenant in view.shares.tenants]
        yield from _indent(table(("tenant", *_OF_TENANTS), rows, columns - len(_INDENT)))
    retained = [f"{size(held)} of {tier.label}" for tier, held in view.shares.retained_bytes.items() if held]
    if retained:
        yield from _paragraph(f"retained for requests and prefixes: {', '.join(retained)}", columns)


_OF_TENANTS: Final = ("cpu", "disk", "hit rate", "loaded", "saved")


def _tenant(tenant: TenantRow) -> tuple[str, ...]:
    held = (tenant.held_bytes.get(tier) for tier in (Tier.CPU, Tier.DISK))
    return (
        tenant.name,
        *(NONE if of_tier is None else size(of_tier) for of_tier in held),
        share(tenant.hit_rate),
        count(tenant.hit_tokens),
        seconds(tenant.saved_s),
    )


def overview_by_share(views: Sequence[ResourceView], columns: int) -> str:
    """A table of the tenants of some resources, as lines of at most so many columns, with a final newline."""
    rows = [
        (f"{view.namespace}/{view.name}", *_tenant(tenant))
        for view in views
        for tenant in view.shares.tenants
    ]
    if not rows:
        none = "no engine tells of tenants: a resource has them by spec.tenants"
        lines = fold(none, columns) if views else [_NO_RESOURCES.rstrip()]
        return "\n".join([*lines, *_not_read(views, columns)]) + "\n"
    headings = ("name", "tenant", *_OF_TENANTS)
    lines = table(headings, rows, columns, text=("tenant",))
    return "\n".join([*lines, *_not_read(views, columns)]) + "\n"


def _picker(view: ResourceView, columns: int) -> Iterator[str]:
    """What it is configured to remember, what it believes, and where clients ask."""
    entries = ", ".join(
        f"{name.removesuffix('Prefix')} {entries:,}" for name, entries in view.entries.items() if entries
    )
    of = f" of {many(view.tokens_per_entry, 'token')} each" if view.tokens_per_entry else ""
    which = f"its owner's, by ConfigMap {view.config_map}" if view.config_map else view.flavor
    yield from _paragraph(f"{which}; prefix entries an engine: {entries or 'none'}{of}", columns)
    figures = view.picker
    if figures.known_engines is not None:
        yield from _paragraph(
            f"knows {many(figures.known_engines, 'engine')}, {figures.stale_engines or 0:,} of them without "
            f"a recent reading; {many(figures.picks or 0, 'request')} sent",
            columns,
        )
    if figures.believed_share is not None:
        found_share = view.engines.found_share
        yield from _paragraph(
            f"believed the engine it picked to hold {share(figures.believed_share)} of a prompt"
            + (f"; engines found {share(found_share)}" if found_share is not None else ""),
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


def _paragraph(text: str, columns: int) -> list[str]:
    return fold(text, columns, _INDENT)


def _indent(lines: Sequence[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in lines)


_NAME_COLUMNS: Final = 20
"""What a name is left, before less important columns give way."""
_NO_RESOURCES: Final = "no KVCacheTiers\n"
_FIRST_TO_GO: Final = ("gpu in use", "gpu saved", "disk filled", "gpu hit")


def overview(views: Sequence[ResourceView], columns: int) -> str:
    """A table of resources, as lines of at most so many columns, with a final newline.

    Columns that say nothing of any resource are left out, and where the terminal is narrow those that say
    least of the tiers beyond the device.
    """
    if not views:
        return _NO_RESOURCES
    names = [f"{view.namespace}/{view.name}" for view in views]
    cells_by_view = [_cells(view) for view in views]
    shown = [title for title in cells_by_view[0] if any(cells[title] != NONE for cells in cells_by_view)]
    for title in _FIRST_TO_GO:
        if title in shown and _width(shown, cells_by_view) + _NAME_COLUMNS > columns:
            shown.remove(title)
    rows = [
        (name, *(cells[title] for title in shown)) for name, cells in zip(names, cells_by_view, strict=True)
    ]
    return "\n".join([*table(("name", *shown), rows, columns), *_not_read(views, columns)]) + "\n"


def listing(views: Sequence[ResourceView], columns: int) -> str:
    """A table of resources that says whether each serves, as lines of at most so many columns.

    Where the terminal is narrow their models are left out.
    """
    if not views:
        return _NO_RESOURCES
    cells_by_view = [_state(view) for view in views]
    titles = [*cells_by_view[0]]
    if _width(titles, cells_by_view) + _NAME_COLUMNS > columns:
        titles.remove("model")
    rows = [
        (f"{view.namespace}/{view.name}", *(cells[title] for title in titles))
        for view, cells in zip(views, cells_by_view, strict=True)
    ]
    lines = table(("name", *titles), rows, columns, text=("model", "ready", "reason"))
    return "\n".join([*lines, *_not_read(views, columns)]) + "\n"


def _state(view: ResourceView) -> dict[str, str]:
    ready = next((condition for condition in view.conditions if condition.type == "Ready"), None)
    return {
        "model": view.model or NONE,
        "ready": ready.status if ready else NONE,
        "reason": ready.reason if ready else NONE,
        "engines": f"{view.ready_replicas}/{view.replicas}",
        "hit rate": share(view.engines.found_share),
    }


def _not_read(views: Sequence[ResourceView], columns: int) -> Iterator[str]:
    for line in dict.fromkeys(line for view in views for line in view.unread):
        yield from fold(f"not read: {line}", columns)


def _cells(view: ResourceView) -> dict[str, str]:
    by_tier = {held.tier: held for held in view.tiers}
    hits = {f"{tier.label} hit": share(row.hit_rate) for tier, row in _rows(by_tier)}
    filled = {
        "gpu in use" if tier is Tier.GPU else f"{tier.label} filled": share(row.filled)
        for tier, row in _rows(by_tier)
    }
    saved = {f"{tier.label} saved": seconds(row.saved_s) for tier, row in _rows(by_tier)}
    return {"ready": f"{view.ready_replicas}/{view.replicas}", **hits, **filled, **saved}


def _rows(by_tier: dict[Tier, TierRow]) -> list[tuple[Tier, TierRow]]:
    """A row of every tier, so that all resources have the same columns."""
    return [(tier, by_tier.get(tier) or TierRow(tier, None, None, None, None, None)) for tier in Tier]


def _width(titles: Sequence[str], rows: Sequence[dict[str, str]]) -> int:
    return sum(2 + max(len(title), *(len(cells[title]) for cells in rows)) for title in titles)


def resources_json(views: Sequence[ResourceView]) -> str:
    """What `-o json` prints for some resources, with a final newline."""
    return json_document([view_fields(view, next_step(view)) for view in views]) + "\n"


def view_fields(view: ResourceView, step: NextStep) -> dict[str, Any]:
    """What `-o json` prints for one resource; what is not known is None."""
    return {
        "namespace": view.namespace,
        "name": view.name,
        "model": view.model,
        "backend": view.backend,
        "replicas": view.replicas,
        "readyReplicas": view.ready_replicas,
        "url": view.url or None,
        "conditions": [asdict(condition) for condition in view.conditions],
        "pods": [
            {
                "name": pod.name,
                "component": pod.component,
                "state": pod.state,
                "message": pod.message,
                "restarts": pod.restarts,
                "ageSeconds": round(pod.age_s),
                "node": pod.node,
            }
            for pod in view.pods
        ],
        "engines": {
            "answered": view.engines.engines,
            "promptTokens": view.engines.asked_tokens,
            "prefillTokensPerSecond": view.engines.prefill_tokens_per_s,
            "loadSeconds": view.engines.load_s,
            "growing": view.engines.growing,
            "diskDegraded": view.engines.degraded,
            "diskDoesNotPay": view.engines.unpaid,
        },
        "tiers": {
            held.tier.label: {
                "bytes": held.capacity_bytes,
                "tokens": held.capacity_tokens,
                "filled": held.filled,
                "hitTokens": view.engines.hit_tokens[held.tier],
                "hitRate": held.hit_rate,
                "savedSeconds": held.saved_s,
            }
            for held in view.tiers
        },
        "shares": shares_fields(view.shares),
        "picker": {
            "flavor": view.flavor,
            "configMap": view.config_map or None,
            "answered": view.picker.pickers,
            "entries": dict(view.entries),
            "tokensPerEntry": view.tokens_per_entry,
            "knownEngines": view.picker.known_engines,
            "staleEngines": view.picker.stale_engines,
            "picks": view.picker.picks,
            "believedShare": view.picker.believed_share,
            "indexFilled": {tier.label: full for tier, full in view.picker.index_share.items()},
        },
        "next": {"text": step.text, "command": step.command},
        "notRead": list(view.unread),
    }
