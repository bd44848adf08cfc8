"""What an autoscaler compares: a number of each engine pod, and what it is to be on average.

Kubernetes makes that `ceil(sum over the pods / threshold)` pods. So a number has to grow with what there is
to do, and its sum must not grow with the number of pods alone: a pod that has just started adds nothing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget

_DEFAULTS: Final = {
    ScalingTarget.QUEUE: 5,
    ScalingTarget.KV_CACHE_UTILIZATION: 80,
    ScalingTarget.HIT_RATE: 50,
}
_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class ScalingMetric:
    """What one target means in numbers.

    Attributes:
        pod_metric: Its name in the custom metrics API (custom.metrics.k8s.io), of pods.
        threshold: What an engine is to have on average.
        goal: The same in words, such as `5 waiting requests an engine`.
    """

    pod_metric: str
    threshold: Fraction
    goal: str

    @property
    def threshold_number(self) -> str:
        """As a decimal number, such as `0.8`."""
        return f"{float(self.threshold):g}"

    @property
    def threshold_quantity(self) -> str:
        """As Kubernetes writes it, such as `800m`."""
        whole = self.threshold.denominator == 1
        return str(self.threshold) if whole else f"{self.threshold * 1000}m"


def scaling_metric(wanted: Autoscaling) -> ScalingMetric:
    """The metric of `spec.autoscaling.target`, with its value or the default of it."""
    value = wanted.target_value or _DEFAULTS[wanted.target]
    match wanted.target:
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
