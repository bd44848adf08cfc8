"""What pods of others are given, on a screen and as data."""

from collections.abc import Iterator
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.report.demand import MemoryPart, largest_first
from kvtier_operator.planning.report.lines import REPORT_COLUMNS, fold, painter, readable
from kvtier_operator.planning.units import count, quantity, size

_INDENT: Final = 12
_SHARE: Final = 20
"""A part of the memory has a name of its own from a twentieth on."""
_UNKNOWN_TOKENS: Final = "tokens are known with spec.model"
_ASSUMED: Final = "tokens of one rank in the model's own dtype"


def summarise_attached(
    plan: AttachPlan,
    *,
    colour: bool = False,
    source: str = "",
    columns: int = REPORT_COLUMNS,
    verbose: bool = False,
) -> str:
    """What each pod that a resource selects is given.

    Args:
        plan: What they are given.
        colour: Whether to paint it, as `kvtier_common.terminal.say` makes colours of.
        source: The resource's file, where there are several.
        columns: Of the terminal.
        verbose: Whether to say how the memory came about, and the connector's settings.

    Returns:
        Lines of text with a final newline.
    """
    columns, paint = readable(columns), painter(colour=colour)
    parts = [paint(plan.name, "bold"), plan.model, paint("in pods of others", "dim"), paint(source, "dim")]
    heading = f"  {'tier':<10}{'size':>10}{'tokens':>14}  {_ASSUMED if plan.tokens else _UNKNOWN_TOKENS}"
    lines = ["  ".join(filter(None, parts)), "", paint(heading, "dim")]
    for tier, capacity_bytes in plan.capacity_bytes.items():
        tokens = count(plan.tokens[tier]) if tier in plan.tokens else "?"
        lines.append(f"  {tier.label:<10}{size(capacity_bytes):>10}{tokens:>14}{_shared(tier)}")
    lines.append("")
    for label, text in _rows(plan, verbose=verbose):
        first, *others = fold(text, columns - _INDENT)
        lines += [f"  {label:<10}{first}", *(f"{'':{_INDENT}}{line}" for line in others)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _shared(tier: Tier) -> str:
    return "  of all engines together" if tier.shared else ""


def _rows(plan: AttachPlan, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """A label and what stands beside it."""
    labels = ",".join(f"{name}={value}" for name, value in plan.attach.pod_selector.match_labels.items())
    yield "pods", f"{labels} in namespace {plan.namespace}; `kvtier attach` says what becomes of a manifest"
    parts = [MemoryPart(line.what, line.bytes) for line in plan.memory]
    named = ", ".join(f"{line.what} {size(line.bytes)}" for line in plan.memory)
    more = named if verbose else largest_first(parts, plan.memory_bytes // _SHARE)
    yield "memory", f"{size(plan.memory_bytes)} more in each pod's requests and limits of it: {more}"
    for name, amount in plan.hugepages.items():
        yield "pages", f"{amount} of {name} more in each pod"
    if plan.disk_bytes:
        whose = "of the node's disk" if plan.node_disk_bytes else "in a volume of its own"
        yield "disk", f"{size(plan.disk_bytes)} {whose} for each pod"
    if verbose:
        yield "settings", plan.settings


def report_attached(plan: AttachPlan) -> dict[str, Any]:
    """The same as `kvtier plan -o json` prints it; tokens are None where no model is named."""
    return {
        "resource": {"namespace": plan.namespace, "name": plan.name},
        "attach": {
            "model": plan.model or None,
            "podSelector": {"matchLabels": dict(plan.attach.pod_selector.match_labels)},
            "tiers": {
                tier.label: {"bytes": capacity_bytes, "tokens": plan.tokens.get(tier)}
                for tier, capacity_bytes in plan.capacity_bytes.items()
            },
            "memory": [{"what": line.what, "bytes": line.bytes, "why": line.why} for line in plan.memory],
            "memoryBytes": plan.memory_bytes,
            "hugepages": dict(plan.hugepages),
            "diskBytes": plan.disk_bytes,
            "ephemeralStorage": quantity(plan.node_disk_bytes),
            "settings": plan.settings,
        },
    }
