"""Fires when chunks are lost to failed transfers."""

from kvtier_common.metrics import cpu_tier
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def transfers_failing(plan: Plan, queries: Queries) -> Alert | None:
    """Chunks are lost to failed transfers."""
    del plan
    if not queries.kvtier:
        return None
    return Alert(
        "KVCacheTierTransfersFailing",
        f"sum by (pod) (increase({cpu_tier.FAILED_CHUNKS}_total{{{queries.engine}}}[10m])) > 0",
        minutes=5,
        severity="warning",
        summary="loads or stores of the tier fail",
        description="{{ $value | humanize }} chunks were lost to failed transfers in ten minutes on "
        "{{ $labels.pod }}. Their tokens are computed anew; the engine's log says why.",
    )
