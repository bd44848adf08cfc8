"""Fires when an engine took less memory than was planned, and does not grow any more."""

from kvtier_common.metrics import cpu_tier
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.tiers.observed_tiers import TOLERANCE


def smaller_than_planned(plan: Plan, queries: Queries) -> Alert | None:
    """An engine took less memory than was planned."""
    if not queries.kvtier:
        return None
    planned_bytes = plan.tiers.cpu.capacity_bytes
    return Alert(
        "KVCacheTierSmallerThanPlanned",
        f"{queries.gauge(cpu_tier.CAPACITY_BYTES, by='pod')} < {1 - TOLERANCE} * {planned_bytes}"
        # an idle engine's figures stand still: it has said last that it grows
        f" and on (pod) {queries.gauge(cpu_tier.GROWING, by='pod')} == 0",
        minutes=10,
        severity="warning",
        summary="a CPU tier is smaller than planned",
        description="The CPU tier of {{ $labels.pod }} holds {{ $value | humanize1024 }}B, less than the "
        f"{planned_bytes:,} bytes planned: the picker sends it prefixes that it no longer has. Memory that "
        "was refused, or that a GPU's driver would not page-lock, is named in the engine's log.",
    )
