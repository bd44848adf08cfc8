"""Fires when an engine computes sooner than its disk reads."""

from kvtier_common.metrics import disk_tier
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def disk_does_not_pay(plan: Plan, queries: Queries) -> Alert | None:
    """An engine computes sooner than its disk reads."""
    del plan
    if not queries.kvtier_disk:
        return None
    return Alert(
        "KVCacheTierDiskDoesNotPay",
        f"max by (pod) ({disk_tier.PAYS}{{{queries.engine}}}) == 0",
        minutes=60,
        severity="warning",
        summary="a disk tier is slower than computing",
        description="{{ $labels.pod }} computes every prompt sooner than its disk reads it, so the disk is "
        "not used: the engine's log has both figures. A faster disk pays, or take tiers.disk away.",
    )
