"""What every pod has in which an engine runs, whoever starts it."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.planning.objects.engine.pod.doctor import engine_doctor
from kvtier_operator.planning.objects.engine.pod.fetcher import engine_fetcher
from kvtier_operator.planning.objects.engine.pod.security import engine_pod_security
from kvtier_operator.planning.objects.engine.pod.sidecar import engine_sidecars
from kvtier_operator.planning.objects.engine.pod.volumes import engine_volumes
from kvtier_operator.planning.objects.placement import placement
from kvtier_operator.planning.plan import Plan


def engine_pod(plan: Plan, container: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's spec: where it may run, who it runs as, its volumes, and what comes before its container."""
    engine = plan.resource.spec.engine
    claims = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in engine.resource_claims
    ]
    return {
        "automountServiceAccountToken": False,
        # vLLM reads VLLM_* variables; a Service called vllm would inject some
        "enableServiceLinks": False,
        "securityContext": engine_pod_security(plan.resource.spec),
        **placement(plan, engine),
        **({"resourceClaims": claims} if claims else {}),
        "initContainers": [engine_doctor(plan), *engine_fetcher(plan), *engine_sidecars(plan)],
        "containers": [dict(container)],
        "volumes": engine_volumes(plan),
    }
