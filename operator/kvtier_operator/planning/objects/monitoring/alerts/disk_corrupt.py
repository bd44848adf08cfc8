"""Fires when a disk does not give back what was written to it."""

from kvtier_common.metrics import disk_tier
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def disk_corrupt(plan: Plan, queries: Queries) -> Alert | None:
    """A disk does not give back what was written to it."""
    del plan
    if not queries.kvtier_disk:
        return None
    return Alert(
        "KVCacheTierDiskCorrupt",
        f"sum by (pod) (increase({disk_tier.CORRUPT_CHUNKS}_total{{{queries.engine}}}[1h])) > 0",
        # one damaged chunk is one too many, and it is gone from the disk already
        minutes=0,
        severity="warning",
        summary="a disk does not give back what was written to it",
        description="{{ $value | humanize }} chunks on the disk of {{ $labels.pod }} were not as written in "
        "the last hour. They were dropped and computed anew; look after the device.",
    )
