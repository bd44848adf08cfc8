"""Which autoscaler a resource gets, and the number of each engine pod that it compares."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from kvtier_common.metrics.tier_metrics import CAPACITY_BYTES, USED_BYTES
from kvtier_common.tier import OF_A_POD, Tier
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.api.spec.tiers import Ability
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.observed import Observed

_DEFAULTS: Final = {
    ScalingTarget.QUEUE: 5,
    ScalingTarget.KV_CACHE_UTILIZATION: 80,
    ScalingTarget.HIT_RATE: 50,
}
_PERCENT: Final = 100
_WINDOW: Final = "10m"
"""Of rates: as long as a few long prompts, and shorter than a working set takes to move."""
FULL_SHARE: Final = 0.95
"""Share of all tiers beyond the device together, from which another engine would have memory for more."""


class Scaler(StrEnum):
    """Kinds of autoscalers; the value is the kind's name."""

    SCALED_OBJECT = "ScaledObject"
    POD_AUTOSCALER = "HorizontalPodAutoscaler"


def choose_scaler(spec: Spec, observed: Observed) -> Scaler | None:
    """KEDA's where the cluster has it and the resource names a Prometheus to ask; else Kubernetes' own.

    Where no cluster was looked at, whoever names a Prometheus has KEDA.
    """
    if spec.autoscaling is None:
        return None
    has_keda = observed.serves_scaled_objects is not False
    return Scaler.SCALED_OBJECT if has_keda and spec.autoscaling.prometheus_url else Scaler.POD_AUTOSCALER


@dataclass(frozen=True, slots=True)
class ScalingMetric:
    """What one target means in numbers: a number of each engine pod, and what it is to be on average.

    Kubernetes makes that `ceil(sum over the pods / threshold)` pods. So a number has to grow with what there
    is to do, and its sum must not grow with the number of pods alone: a pod that has just started adds
    nothing.
    """

    pod_metric: str  # its name in the custom metrics API (custom.metrics.k8s.io), of pods
    threshold: Fraction  # what an engine is to have on average
    goal: str  # the same in words, such as `5 waiting requests an engine`

    @property
    def threshold_number(self) -> str:
        """As a decimal number, such as `0.8`."""
        return f"{float(self.threshold):g}"

    @property
    def threshold_quantity(self) -> str:
        """As Kubernetes writes it, such as `800m`."""
        whole = self.threshold.denominator == 1
        return str(self.threshold) if whole else f"{self.threshold * 1000}m"


def scaling_metric(autoscaling: Autoscaling) -> ScalingMetric:
    """The metric of `spec.autoscaling.target`, with its value or the default of it."""
    value = autoscaling.target_value or _DEFAULTS[autoscaling.target]
    match autoscaling.target:
        case ScalingTarget.QUEUE:
            requests = "request" if value == 1 else "requests"
            return ScalingMetric(
                "vllm_num_requests_waiting", Fraction(value), f"{value} waiting {requests} an engine"
            )
        case ScalingTarget.KV_CACHE_UTILIZATION:
            return ScalingMetric(
                "vllm_kv_cache_usage_perc",
                Fraction(value, _PERCENT),
                f"{value}% of the device's cache in use",
            )
        case ScalingTarget.HIT_RATE:
            return ScalingMetric(
                "kvtier_missed_share",
                Fraction(_PERCENT - value, _PERCENT),
                f"{value}% of prompt tokens found in a tier",
            )


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
    by_pod = pod_query(target, engine, tells_fill=tells_fill)
    return f"sum({by_pod}) or 0 * count(up{{{engine}}} == 1)"


def _missed_share(engine: str, *, tells_fill: bool) -> str:
    """Share of prompt tokens that no tier held; 0 of pods that nobody asks, or whose tiers are not full.

    A pod whose tiers are not full misses what it has not seen yet, and another pod would miss that as well.
    """
    queries = _rate("vllm:prefix_cache_queries_total", engine)
    device = _rate("vllm:prefix_cache_hits_total", engine)
    beyond = _rate("vllm:external_prefix_cache_hits_total", engine)
    missed = f"clamp_min(1 - ({device} + {beyond}) / ({queries} > 0), 0)"
    if not tells_fill:
        return f"{missed} or 0 * {queries}"
    used, there = _of_tiers(USED_BYTES, engine), _of_tiers(CAPACITY_BYTES, engine)
    return f"{missed} * on (pod) ({used} >= bool {FULL_SHARE} * {there}) or 0 * {used}"


def _of_tiers(names: Mapping[Tier, bytes], engine: str) -> str:
    """A gauge of all tiers that a pod has for itself."""
    return (
        f'sum by (pod) ({{__name__=~"{b"|".join(names[tier] for tier in OF_A_POD[1:]).decode()}",{engine}}})'
    )


def _rate(counter: str, engine: str) -> str:
    return f"sum by (pod) (rate({counter}{{{engine}}}[{_WINDOW}]))"


@dataclass(frozen=True, slots=True)
class Scaling:
    """An autoscaler in short."""

    scaler: Scaler  # its kind
    name: str  # its name
    goal: str  # what it is for, such as `2 to 8 engine pods by 5 waiting requests an engine`
    needs: str  # what it needs of the cluster to know its metric
    tells_fill: bool  # whether engines say how full their tiers are


def scaling_of(resource: KVCacheTier, scaler: Scaler | None) -> Scaling | None:
    """Of a resource, for its kind of autoscaler; None where it says how many engines there are."""
    wanted = resource.spec.autoscaling
    if wanted is None or scaler is None:
        return None
    metric = scaling_metric(wanted)
    return Scaling(
        scaler=scaler,
        name=Names.of_resource(resource).engine,
        goal=f"{wanted.min_replicas} to {wanted.max_replicas} engine pods by {metric.goal}",
        needs=f"a Prometheus at {wanted.prometheus_url} that scrapes the engines"
        if scaler is Scaler.SCALED_OBJECT
        else f"a metrics adapter that serves {metric.pod_metric} of pods (custom.metrics.k8s.io), or KEDA "
        "with spec.autoscaling.prometheusUrl",
        tells_fill=Ability.TELLS_OF_TIERS in resource.spec.backend.abilities,
    )
