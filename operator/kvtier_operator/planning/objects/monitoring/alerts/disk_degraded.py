"""Fires when an engine cannot use its disk."""

from kvtier_common.metrics import disk_tier
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def disk_degraded(plan: Plan, queries: Queries) -> Alert | None:
    """An engine cannot use its disk."""
    del plan
    if not queries.kvtier_disk:
        return None
    return Alert(
        "KVCacheTierDiskDegraded",
        f"max by (pod) ({disk_tier.DEGRADED}{{{queries.engine}}}) > 0",
        minutes=5,
        severity="warning",
        summary="an engine cannot use its disk tier",
        description="{{ $labels.pod }} serves from memory alone, as its disk is full, read-only, failing or "
        "too slow: the engine's log says which. It takes the disk up again by itself.",
    )
