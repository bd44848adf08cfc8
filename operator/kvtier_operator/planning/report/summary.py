"""A plan on one screen: what the resource comes to, what it takes of nodes, and what to look at."""

from collections.abc import Iterable, Iterator
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.formats import share_of
from kvtier_operator.api.spec.kept import Tenant
from kvtier_operator.planning.base.kept import retained_shares
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import storage_bytes
from kvtier_operator.planning.pod.kept import prefixes_within_s
from kvtier_operator.planning.report.demand import devices, largest_first, memory_bytes, memory_parts
from kvtier_operator.planning.report.lines import (
    REPORT_COLUMNS,
    Paint,
    check_rows,
    device_name,
    first_line,
    fold,
    painter,
    passes,
    readable,
    rule,
    verdict,
)
from kvtier_operator.planning.report.rollout import rollout
from kvtier_operator.planning.tiers.loading import loadings
from kvtier_operator.planning.tiers.store_demand import store_demand
from kvtier_operator.planning.units import count, many, size

_INDENT: Final = 12
_NOTE: Final = "  - "
_SHARE: Final = 20
"""A part of the memory has a name of its own from a twentieth on."""


def summarise(
    plan: Plan,
    *,
    colour: bool = False,
    source: str = "",
    columns: int = REPORT_COLUMNS,
    node: str = "",
) -> str:
    """The summary of one plan.

    Args:
        plan: The plan.
        colour: Whether to paint it, as `kvtier_common.terminal.say` makes colours of.
        source: The resource's file, where there are several.
        columns: Of the terminal; the summary has 80 to 120, longer words excepted.
        node: What is said of a node that was asked about; empty for none.

    Returns:
        Lines of text with a final newline.
    """
    columns, paint = readable(columns), painter(colour=colour)
    lines = [first_line(plan, source, paint), "", *_loud(plan, paint, columns), *_tiers(plan, paint), ""]
    for label, text in (*_rows(plan), *([("node", node)] if node else [])):
        first, *others = fold(text, columns - _INDENT)
        lines += [f"  {label:<10}{first}", *(f"{'':{_INDENT}}{line}" for line in others)]
    if plan.notes:
        lines += ["", *_notes(plan.notes, paint, columns)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _notes(notes: Iterable[str], paint: Paint, columns: int) -> Iterator[str]:
    for note in notes:
        first, *others = fold(note, columns - len(_NOTE))
        yield paint(f"{_NOTE}{first}", "dim")
        yield from (paint(f"{'':{len(_NOTE)}}{line}", "dim") for line in others)


def _loud(plan: Plan, paint: Paint, columns: int) -> Iterator[str]:
    """What somebody should do something about, in full."""
    if not (loud := [row for row in check_rows(plan, paint, columns) if row.loud]):
        return
    yield rule(verdict(plan), columns, paint)
    for row in loud:
        first, *others = row.lines
        yield f"  {row.mark} {row.name:<24} {first}"
        yield from (f"{'':29}{line}" for line in others)
    yield ""


def _tiers(plan: Plan, paint: Paint) -> Iterator[str]:
    pays = _pays(plan)
    yield paint(f"  {'tier':<10}{'size':>10}{'tokens':>14}", "dim")
    for tier in Tier:
        planned = plan.tiers.by_tier.get(tier)
        if tier is Tier.GPU:
            size_and_tokens = (size(planned.capacity_bytes), count(planned.tokens)) if planned else ("?", "?")
            lacks = "gpu" if plan.resource.spec.engine.gpu is None else "kvCacheMemory, or spec.model.weights"
            why = "" if planned else f"known once an engine runs, or by spec.engine.{lacks}"
            yield f"  {device_name(plan):<10}{size_and_tokens[0]:>10}{size_and_tokens[1]:>14}  {why}"
        elif planned:
            row = f"  {tier.label:<10}{size(planned.capacity_bytes):>10}{count(planned.tokens):>14}"
            yield f"{row}  {pays.get(tier, '')}"


def _pays(plan: Plan) -> dict[Tier, str]:
    """From where on each tier beyond the device is sooner than computing."""
    spec, geometry = plan.resource.planned_spec, plan.geometry
    said = {}
    for loading in loadings(spec, geometry):
        if loading.pays is None:
            said[loading.tier] = "pays where prefill is slower than loading"
        elif loading.break_even_tokens is None:
            said[loading.tier] = "does not pay: computing again is sooner"
        else:
            said[loading.tier] = f"pays from {many(loading.break_even_tokens, 'cached token')} on"
    if remote := spec.tiers.remote:
        demand = store_demand(spec, geometry, remote)
        rate = demand.break_even_bytes_per_s
        if rate is None:
            said[Tier.REMOTE] = "engines measure whether it pays"
        else:
            lacks = ", and has less" if demand.pays is False else ""
            said[Tier.REMOTE] = f"pays from {rate / 1e9:.3g} GB/s an engine on{lacks}"
    return said


def _rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """A label and what stands beside it."""
    if (gpus := _gpus(plan)) is not None:
        yield "GPUs", gpus
    whole = memory_bytes(plan)
    yield (
        "memory",
        f"{size(whole)} of the node for each pod: {largest_first(memory_parts(plan), whole // _SHARE)}",
    )
    if plan.budget.cpu:
        parts = ", ".join(line.what for line in plan.budget.cpu)
        cores = sum(line.millicores for line in plan.budget.cpu) / 1000
        yield "cores", f"{cores:g} of the node for each pod: {parts}"
    if disk := storage_bytes(plan.budget.storage):
        yield "disk", f"{size(disk)} of the node for each pod"
    yield from _kept(plan)
    yield "image", plan.engine.image
    yield "picker", _picker(plan)
    if plan.router.gateway and plan.router.gateway.url:
        yield "URL", plan.router.gateway.url
    yield "rollout", rollout(plan)
    yield "checks", ", ".join(filter(None, (passes(plan), verdict(plan))))


def _kept(plan: Plan) -> Iterator[tuple[str, str]]:
    """What stays when room is needed, where the resource says something of it."""
    spec, cpu = plan.resource.spec, plan.tiers.cpu
    if (
        spec.prefixes
        or spec.tenants
        or any(tier.retained for tier in (spec.tiers.cpu, spec.tiers.disk) if tier)
    ):
        parts = [
            f"{share:.0%} of {tier.label} ({_part(plan.tiers.by_tier[tier], share)})"
            for tier, share in retained_shares(spec).items()
            if tier in plan.tiers.by_tier
        ]
        yield "retained", f"at most {', '.join(parts)} for what requests and prefixes ask to keep"
    if spec.prefixes:
        names = ", ".join(prefix.name for prefix in spec.prefixes)
        yield (
            "prefixes",
            f"{names}: computed before a pod is ready, within {prefixes_within_s(spec)} s",
        )
    if spec.tenants:
        yield "tenants", f"of cpu, each pod: {'; '.join(_tenant(tenant, cpu) for tenant in spec.tenants)}"


def _tenant(tenant: Tenant, cpu: TierPlan) -> str:
    guaranteed, most = share_of(tenant.guaranteed), share_of(tenant.most)
    parts = [
        f"{_part(cpu, guaranteed)} guaranteed" if guaranteed else "nothing guaranteed",
        *([f"gives way above {_part(cpu, most)}"] if most < 1 else []),
    ]
    return f"{tenant.name} {', '.join(parts)}"


def _part(tier: TierPlan, share: float) -> str:
    return f"{count(int(tier.tokens * share))} tokens, {size(int(tier.capacity_bytes * share))}"


def _gpus(plan: Plan) -> str | None:
    engine = plan.resource.spec.engine
    claims = [f"claim {claim.name}" for claim in engine.resource_claims]
    asked = [f"{number} {name}" for name, number in devices(plan).items()]
    if not asked and not claims:
        return None
    which = f" ({engine.gpu})" if engine.gpu else ""
    return f"{', '.join((*asked, *claims))}{which} for each pod"


def _picker(plan: Plan) -> str:
    router = plan.router
    entries = [f"{count(value)} {tier.label}" for tier, value in router.entries.items() if value is not None]
    if router.gpu_from_metrics:
        entries.insert(0, "gpu from the engine's metrics")
    prefixes = f"prefix entries of {router.tokens_per_entry} tokens: {', '.join(entries)}"
    return f"{router.flavor} {router.version}, {prefixes}"
