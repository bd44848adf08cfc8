"""PromQL of what engines have to do: for each pod, and all pods together as KEDA is to count it."""

from typing import Final

from kvtier_common.metrics import cpu_tier, disk_tier
from kvtier_operator.api.spec.engine import ScalingTarget

_WINDOW: Final = "10m"
"""Of rates: as long as a few long prompts, and shorter than a working set takes to move."""
_FULL: Final = 0.95
"""Share of all tiers beyond the device together, from which another engine would give prompts room."""


def pod_query(target: ScalingTarget, engine: str, *, tells_fill: bool) -> str:
    """A number for each pod.

    Args:
        target: What to scale by.
        engine: Label matchers of the engines' series, without braces.
        tells_fill: Whether the backend says how full its tiers are.
    """
    match target:
        case ScalingTarget.QUEUE:
            return f"sum by (pod) (vllm:num_requests_waiting{{{engine}}})"
        case ScalingTarget.KV_CACHE_UTILIZATION:
            return f"avg by (pod) (vllm:kv_cache_usage_perc{{{engine}}})"
        case ScalingTarget.HIT_RATE:
            return _missed_share(engine, tells_fill=tells_fill)


def total_query(target: ScalingTarget, engine: str, *, tells_fill: bool) -> str:
    """The sum over all pods, 0 where none of those that answer has a number; arguments as of `pod_query`.

    Nothing where no engine is scraped: that is no reason to scale down.
    """
    each = pod_query(target, engine, tells_fill=tells_fill)
    return f"sum({each}) or 0 * count(up{{{engine}}} == 1)"


def _missed_share(engine: str, *, tells_fill: bool) -> str:
    """Share of prompt tokens that no tier held; 0 of pods that nobody asks, or whose tiers have room.

    A pod whose tiers have room misses what it has not seen yet, and another pod would miss that as well.
    """
    asked = _rate("vllm:prefix_cache_queries_total", engine)
    device = _rate("vllm:prefix_cache_hits_total", engine)
    beyond = _rate("vllm:external_prefix_cache_hits_total", engine)
    missed = f"clamp_min(1 - ({device} + {beyond}) / ({asked} > 0), 0)"
    if not tells_fill:
        return f"{missed} or 0 * {asked}"
    used = _of_tiers(cpu_tier.USED_BYTES, disk_tier.USED_BYTES, engine)
    there = _of_tiers(cpu_tier.CAPACITY_BYTES, disk_tier.CAPACITY_BYTES, engine)
    return f"{missed} * on (pod) ({used} >= bool {_FULL} * {there}) or 0 * {used}"


def _of_tiers(cpu: str, disk: str, engine: str) -> str:
    """A gauge of all tiers that a pod has."""
    return f'sum by (pod) ({{__name__=~"{cpu}|{disk}",{engine}}})'


def _rate(counter: str, engine: str) -> str:
    return f"sum by (pod) (rate({counter}{{{engine}}}[{_WINDOW}]))"
