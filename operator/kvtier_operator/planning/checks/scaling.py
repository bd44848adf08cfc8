"""Whether the metric that engines are to be scaled by can be had, and means what it should."""

from kvtier_operator.api.spec.engine import ScalingTarget
from kvtier_operator.api.spec.tiers import Ability, backends_with, one_of
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.scaling import Scaler, choose_scaler, scaling_metric
from kvtier_operator.planning.verdict import CheckResult


@check("spec.autoscaling")
def scaling_metrics(parts: CheckInput) -> CheckResult:
    """A wish for fewer engines needs a number as well: an autoscaler without one leaves all as it is."""
    wanted = parts.spec.autoscaling
    if wanted is None:
        return scaling_metrics.passed("the number of engines is the resource's", reason="NotAskedFor")
    if wanted.target is ScalingTarget.HIT_RATE and Ability.TELLS_OF_TIERS not in parts.spec.backend.abilities:
        return scaling_metrics.warn(
            "MissesOfAnyKind",
            f"backend {parts.spec.backend} does not say how full its tiers are, so prompts that nobody has "
            f"sent before add engines too, up to {wanted.max_replicas}: use target queue, or backend "
            f"{one_of(backends_with(Ability.TELLS_OF_TIERS))}",
            by_itself="counts every miss",
            field="spec.autoscaling.target",
        )
    if choose_scaler(parts.spec, parts.observed) is Scaler.POD_AUTOSCALER:
        name = scaling_metric(wanted).pod_metric
        return scaling_metrics.passed(
            f"a metrics adapter has to serve {name} of pods (custom.metrics.k8s.io)"
        )
    if not parts.spec.observability.service_monitor:
        return scaling_metrics.warn(
            "MayNotBeScraped",
            f"KEDA asks {wanted.prometheus_url} for series of job "
            f"{Names.of_resource(parts.resource).engine}, and kvtier makes no ServiceMonitor: set "
            "spec.observability.serviceMonitor, or have the engines' Service scraped under its name",
            by_itself="scales as soon as there are such series",
            field="spec.autoscaling.prometheusUrl",
        )
    if "thanos-querier" in (wanted.prometheus_url or "") and not (
        wanted.prometheus and wanted.prometheus.auth_modes
    ):
        return scaling_metrics.warn(
            "MayNotBeAnswered",
            f"KEDA asks {wanted.prometheus_url}, and OpenShift's Thanos answers none without a token (401): "
            "set spec.autoscaling.prometheus.authenticationRef and authModes",
            by_itself="asks without, and AutoscalerReady has the answer",
            field="spec.autoscaling.prometheusUrl",
        )
    return scaling_metrics.passed(
        f"KEDA asks {wanted.prometheus_url}, for which the engines' monitor is made"
    )
