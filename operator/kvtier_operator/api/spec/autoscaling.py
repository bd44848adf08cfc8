"""`spec.autoscaling`: how many engines there are, by how much they have to do."""

import re
from enum import StrEnum
from typing import Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats.base_url import FORBIDDEN_URL, HTTP_URL_PATTERN

MOST_REPLICAS: Final = 10000
_MOST_PERCENT: Final = 99
MOST_STABILIZATION_S: Final = 3600
"""Of a HorizontalPodAutoscaler (k8s.io/kubernetes, pkg/apis/autoscaling/validation)."""


class ScalingTarget(StrEnum):
    """What the number of engines follows."""

    QUEUE = "queue"
    KV_CACHE_UTILIZATION = "kvCacheUtilization"
    HIT_RATE = "hitRate"


class Autoscaling(ApiModel):
    """An autoscaler for the engines: KEDA's ScaledObject, or else a HorizontalPodAutoscaler."""

    min_replicas: int = Field(1, description="Engine pods at least.", ge=1, le=MOST_REPLICAS)
    max_replicas: int = Field(description="Engine pods at most.", ge=1, le=MOST_REPLICAS)
    target: ScalingTarget = Field(
        ScalingTarget.QUEUE,
        description="What the number follows: queue (requests that wait), kvCacheUtilization (the device's cache in use) or hitRate (the share of prompt tokens that a tier holds, of engines whose tiers are full).",
    )
    target_value: int | None = Field(
        None,
        description="What an engine is to have on average: waiting requests (5 when empty), percent of its device's cache in use (80), or percent of prompt tokens found (50).",
        ge=1,
        le=MOST_REPLICAS,
    )
    scale_down_stabilization_seconds: int = Field(
        1800,
        description="How long fewer engines must have sufficed before one goes, with the prefix cache that it has.",
        ge=0,
        le=MOST_STABILIZATION_S,
    )
    prometheus_url: str | None = Field(
        None,
        description="Base URL of the Prometheus that scrapes the engines, for KEDA to ask, such as http://prometheus-operated.monitoring.svc:9090; without it a HorizontalPodAutoscaler is made.",
        max_length=2048,
        pattern=HTTP_URL_PATTERN,
    )

    @rule(
        "self.minReplicas <= self.maxReplicas",
        "minReplicas is more than maxReplicas: lower it, or raise maxReplicas",
        field=".minReplicas",
    )
    def least_within_most(self) -> bool:
        """Kubernetes' own rule for a HorizontalPodAutoscaler, said before there is one."""
        return self.min_replicas <= self.max_replicas

    @rule(
        f"!has(self.prometheusUrl) || !self.prometheusUrl.matches(r'{FORBIDDEN_URL}')",
        "no Prometheus is at an address of KEDA's own machine, its link or a cloud's metadata; write that of its Service",
        field=".prometheusUrl",
    )
    def prometheus_is_elsewhere(self) -> bool:
        """KEDA would ask what nobody but its own machine may ask."""
        return self.prometheus_url is None or re.search(FORBIDDEN_URL, self.prometheus_url) is None

    @rule(
        "!has(self.targetValue) || self.target == 'queue' || self.targetValue <= 99",
        "kvCacheUtilization and hitRate are percentages: write 1 to 99",
        field=".targetValue",
    )
    def percentages_below_a_hundred(self) -> bool:
        """All hits would be none to miss, which no number of engines brings about."""
        is_percentage = self.target is not ScalingTarget.QUEUE
        return self.target_value is None or not is_percentage or self.target_value <= _MOST_PERCENT
