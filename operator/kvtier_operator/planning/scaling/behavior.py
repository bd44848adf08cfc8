"""How fast engines come and go, as a HorizontalPodAutoscaler's `behavior` says it; KEDA takes the same."""

from typing import Any, Final

from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget

_LONGEST_PERIOD_S: Final = 1800
"""Of a policy (k8s.io/kubernetes, pkg/apis/autoscaling/validation)."""
_LEAST_PERIOD_S: Final = 300
_UP_S: Final = 60
"""A burst that is over within a minute is served before an engine has started."""
_UP_BY_HITS_S: Final = 600


def scaling_behavior(wanted: Autoscaling, *, start_s: int, grace_s: int) -> dict[str, Any]:
    """The behaviour.

    Up by as many again within a minute, since waiting requests do not wait for one engine after the other.
    By hits one at a time, and no sooner than the one before can have filled: a new engine misses all at
    first. Down always one at a time, and the next when the one before has drained, for each takes its prefix
    cache with it.

    Args:
        wanted: What the resource asks for.
        start_s: Seconds an engine has to start.
        grace_s: Seconds an engine has to end.
    """
    by_hits = wanted.target is ScalingTarget.HIT_RATE
    up = [_policy("Pods", 1, start_s + _UP_BY_HITS_S)] if by_hits else _DOUBLED
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": _UP_BY_HITS_S if by_hits else _UP_S,
            "selectPolicy": "Max",
            "policies": up,
        },
        "scaleDown": {
            "stabilizationWindowSeconds": wanted.scale_down_stabilization_seconds,
            "selectPolicy": "Max",
            "policies": [_policy("Pods", 1, max(_LEAST_PERIOD_S, grace_s))],
        },
    }


def _policy(type_: str, value: int, period_s: int) -> dict[str, Any]:
    return {"type": type_, "value": value, "periodSeconds": min(period_s, _LONGEST_PERIOD_S)}


_DOUBLED: Final = [_policy("Percent", 100, _UP_S), _policy("Pods", 2, _UP_S)]
