"""What scales the engines: Kubernetes' own autoscaler, or KEDA's."""

from typing import Any, Final

from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.api.spec.prometheus import PrometheusAccess
from kvtier_operator.api.spec.tiers import Ability
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.base.promql import Series
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.scaling import Scaler, scaling_metric, total_query

_LONGEST_PERIOD_S: Final = 1800
"""Of a policy (k8s.io/kubernetes, pkg/apis/autoscaling/validation)."""
_LEAST_PERIOD_S: Final = 300
_UP_S: Final = 60
"""A burst that is over within a minute is served before an engine has started."""
_UP_BY_HITS_S: Final = 600


def pod_autoscaler(plan: Plan) -> dict[str, Any] | None:
    """By pods' custom metrics: processor and memory, which metrics-server knows, say nothing of engines."""
    autoscaling = plan.resource.spec.autoscaling
    if autoscaling is None or plan.scaler is not Scaler.POD_AUTOSCALER:
        return None
    names, metric = Names.of(plan), scaling_metric(autoscaling)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": names.metadata(names.engine, Component.AUTOSCALER),
        "spec": {
            "scaleTargetRef": _target(plan),
            "minReplicas": autoscaling.min_replicas,
            "maxReplicas": autoscaling.max_replicas,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": metric.pod_metric},
                        "target": {"type": "AverageValue", "averageValue": metric.threshold_quantity},
                    },
                }
            ],
            "behavior": _behavior(plan, autoscaling),
        },
    }


def scaled_object(plan: Plan) -> dict[str, Any] | None:
    """KEDA makes a HorizontalPodAutoscaler of it, and answers for its metric.

    That one's name is a label's value as well; KEDA's own, `keda-hpa-` before ours, may be too long for it.
    """
    autoscaling = plan.resource.spec.autoscaling
    if autoscaling is None or plan.scaler is not Scaler.SCALED_OBJECT:
        return None
    names, metric = Names.of(plan), scaling_metric(autoscaling)
    access = autoscaling.prometheus or PrometheusAccess()
    tells_fill = Ability.TELLS_OF_TIERS in plan.resource.spec.backend.abilities
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": names.metadata(names.engine, Component.AUTOSCALER),
        "spec": {
            "scaleTargetRef": _target(plan),
            "minReplicaCount": autoscaling.min_replicas,
            "maxReplicaCount": autoscaling.max_replicas,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "name": f"{names.engine}-keda",
                    "behavior": _behavior(plan, autoscaling),
                }
            },
            "triggers": [
                {
                    **_authentication(access),
                    "type": "prometheus",
                    "metricType": "AverageValue",
                    "metadata": {
                        # KEDA puts /api/v1/query behind it as it is
                        "serverAddress": (autoscaling.prometheus_url or "").rstrip("/"),
                        "query": total_query(
                            autoscaling.target, Series.of(names, names.engine).matchers, tells_fill=tells_fill
                        ),
                        "threshold": metric.threshold_number,
                        # an engine that is not scraped is no engine that has nothing to do
                        "ignoreNullValues": "false",
                        **_asking(access),
                    },
                }
            ],
        },
    }


def _authentication(access: PrometheusAccess) -> dict[str, Any]:
    if (ref := access.authentication_ref) is None:
        return {}
    return {"authenticationRef": {"name": ref.name, "kind": ref.kind.value}}


def _asking(access: PrometheusAccess) -> dict[str, str]:
    """KEDA takes lists as one text."""
    fields = {
        "authModes": ",".join(access.auth_modes),
        "namespace": access.namespace or "",
        "customHeaders": ",".join(f"{header.name}={header.value}" for header in access.headers),
    }
    return {name: value for name, value in fields.items() if value}


def _target(plan: Plan) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": Names.of(plan).engine}


def _behavior(plan: Plan, autoscaling: Autoscaling) -> dict[str, Any]:
    start_s = plan.budget.fetch_s + plan.budget.startup_s
    return scaling_behavior(autoscaling, start_s=start_s, grace_s=plan.ending.grace_s)


def scaling_behavior(autoscaling: Autoscaling, *, start_s: int, grace_s: int) -> dict[str, Any]:
    """How fast engines come and go; KEDA takes the same.

    Up by as many again within a minute, since waiting requests do not wait for one engine after the other.
    By hits one at a time, and no sooner than the one before can have filled: a new engine misses all at
    first. Down always one at a time, and the next when the one before has drained, for each takes its prefix
    cache with it.

    Args:
        autoscaling: What the resource asks for.
        start_s: Seconds an engine has to start.
        grace_s: Seconds an engine has to end.
    """
    by_hits = autoscaling.target is ScalingTarget.HIT_RATE
    up = (
        [_policy("Pods", 1, start_s + _UP_BY_HITS_S)]
        if by_hits
        else [_policy("Percent", 100, _UP_S), _policy("Pods", 2, _UP_S)]
    )
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": _UP_BY_HITS_S if by_hits else _UP_S,
            "selectPolicy": "Max",
            "policies": up,
        },
        "scaleDown": {
            "stabilizationWindowSeconds": autoscaling.scale_down_stabilization_seconds,
            "selectPolicy": "Max",
            "policies": [_policy("Pods", 1, max(_LEAST_PERIOD_S, grace_s))],
        },
    }


def _policy(type_: str, value: int, period_s: int) -> dict[str, Any]:
    return {"type": type_, "value": value, "periodSeconds": min(period_s, _LONGEST_PERIOD_S)}
