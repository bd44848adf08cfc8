"""Which autoscaler a resource gets."""

from enum import StrEnum

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.observed import Observed


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
