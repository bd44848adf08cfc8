"""Fires when the tier brings back fewer tokens a second than a prefill computes."""

from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def loads_slower_than_prefill(plan: Plan, queries: Queries) -> Alert | None:
    """The tier brings back fewer tokens a second than a prefill computes."""
    del plan
    if not queries.moves_by_vllm:
        return None
    loaded = queries.loaded_tokens_per_load_second("30m")
    computed = queries.computed_tokens_per_prefill_second("30m")
    return Alert(
        "KVCacheTierLoadsSlowerThanPrefill",
        f"{loaded} < {computed}",
        minutes=30,
        severity="warning",
        summary="loading from the tier takes longer than computing anew",
        description="The tier brings back {{ $value | humanize }} tokens a second of loading, fewer than a "
        "prefill computes: it costs time instead of saving it.",
    )
