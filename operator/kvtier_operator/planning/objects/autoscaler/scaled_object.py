"""KEDA's ScaledObject of the engines, by a query to Prometheus. Fields: KEDA 2, keda.sh/v1alpha1."""

from typing import Any

from kvtier_operator.api.spec.tiers import TELLING_OF_TIERS
from kvtier_operator.planning.objects.autoscaler.parts import behavior, scale_target
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.scaling.metric import scaling_metric
from kvtier_operator.planning.scaling.query import total_query
from kvtier_operator.planning.scaling.scaler import Scaler


def scaled_object(plan: Plan) -> dict[str, Any] | None:
    """KEDA makes a HorizontalPodAutoscaler of it, and answers for its metric.

    That one's name is a label's value as well; KEDA's own, `keda-hpa-` before ours, may be too long for it.
    """
    wanted = plan.resource.spec.autoscaling
    if wanted is None or plan.scaler is not Scaler.SCALED_OBJECT:
        return None
    names, metric = Names.of(plan), scaling_metric(wanted)
    tells_fill = plan.resource.spec.backend in TELLING_OF_TIERS
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": names.metadata(names.engine, Component.AUTOSCALER),
        "spec": {
            "scaleTargetRef": scale_target(plan),
            "minReplicaCount": wanted.min_replicas,
            "maxReplicaCount": wanted.max_replicas,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "name": f"{names.engine}-keda",
                    "behavior": behavior(plan, wanted),
                }
            },
            "triggers": [
                {
                    "type": "prometheus",
                    "metricType": "AverageValue",
                    "metadata": {
                        # KEDA puts /api/v1/query behind it as it is
                        "serverAddress": (wanted.prometheus_url or "").rstrip("/"),
                        "query": total_query(wanted.target, Queries.of(plan).engine, tells_fill=tells_fill),
                        "threshold": metric.threshold_number,
                        # an engine that is not scraped is no engine that has nothing to do
                        "ignoreNullValues": "false",
                    },
                }
            ],
        },
    }
