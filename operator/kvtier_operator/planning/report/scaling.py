"""What is said of a resource's autoscaler, and what the operator does beside it."""

from dataclasses import dataclass

from kvtier_operator.api.spec.backend import Ability
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.scaling import Scaler, scaling_metric


@dataclass(frozen=True, slots=True)
class Scaling:
    """An autoscaler in short.

    Attributes:
        scaler: Its kind.
        name: Its name.
        goal: What it is for, such as `2 to 8 engine pods by 5 waiting requests an engine`.
        needs: What it needs of the cluster to know its metric.
        tells_fill: Whether engines say how full their tiers are.
    """

    scaler: Scaler
    name: str
    goal: str
    needs: str
    tells_fill: bool


def scaling_of(plan: Plan) -> Scaling | None:
    """Of a plan; None where the resource says how many engines there are."""
    wanted = plan.resource.spec.autoscaling
    if wanted is None or plan.scaler is None:
        return None
    metric = scaling_metric(wanted)
    return Scaling(
        scaler=plan.scaler,
        name=Names.of(plan).engine,
        goal=f"{wanted.min_replicas} to {wanted.max_replicas} engine pods by {metric.goal}",
        needs=f"a Prometheus at {wanted.prometheus_url} that scrapes the engines"
        if plan.scaler is Scaler.SCALED_OBJECT
        else f"a metrics adapter that serves {metric.pod_metric} of pods (custom.metrics.k8s.io), or KEDA "
        "with spec.autoscaling.prometheusUrl",
        tells_fill=Ability.TELLS_OF_TIERS in plan.resource.spec.backend.abilities,
    )
