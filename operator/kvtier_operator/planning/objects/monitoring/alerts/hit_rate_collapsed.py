"""Fires when far fewer prompt tokens are found in a cache than the day before."""

from typing import Final

from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan

_COLLAPSED_TO: Final = 0.5
"""Share of the day before that the hit rate must fall under: prompts of another kind move it by less."""
_WORTH_TELLING: Final = 0.2
"""A hit rate of a day under this is a workload without common prefixes: nothing there can collapse."""
_ENOUGH_TOKENS_PER_S: Final = 100
"""Under this much traffic half an hour is too few prompts for a rate."""


def hit_rate_collapsed(plan: Plan, queries: Queries) -> Alert:
    """Far fewer prompt tokens are found in a cache than the day before."""
    del plan
    now, day = queries.hit_share("30m"), queries.hit_share("1d")
    return Alert(
        "KVCacheTierHitRateCollapsed",
        f"{now} < {_COLLAPSED_TO} * ({day})"
        f" and {day} > {_WORTH_TELLING}"
        f" and {queries.asked('30m')} > {_ENOUGH_TOKENS_PER_S}",
        minutes=15,
        severity="warning",
        summary="the prefix cache's hit rate fell to less than half",
        description="{{ $value | humanizePercentage }} of the prompts' tokens came from a cache in the last "
        "half hour, less than half of the day's share: engines or picker restarted (both forget), "
        "or prompts changed.",
    )
