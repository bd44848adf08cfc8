"""HorizontalPodAutoscaler of the engines, by a metric of pods that an adapter serves."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.autoscaler.parts import behavior, scale_target
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.scaling.metric import scaling_metric
from kvtier_operator.planning.scaling.scaler import Scaler


def pod_autoscaler(plan: Plan) -> dict[str, Any] | None:
    """By pods' custom metrics: processor and memory, which metrics-server knows, say nothing of engines."""
    wanted = plan.resource.spec.autoscaling
    if wanted is None or plan.scaler is not Scaler.POD_AUTOSCALER:
        return None
    names, metric = Names.of(plan), scaling_metric(wanted)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": names.metadata(names.engine, Component.AUTOSCALER),
        "spec": {
            "scaleTargetRef": scale_target(plan),
            "minReplicas": wanted.min_replicas,
            "maxReplicas": wanted.max_replicas,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": metric.pod_metric},
                        "target": {"type": "AverageValue", "averageValue": metric.threshold_quantity},
                    },
                }
            ],
            "behavior": behavior(plan, wanted),
        },
    }
