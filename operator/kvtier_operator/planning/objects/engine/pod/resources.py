"""Which container of the engine's pod gets which resources."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.api.spec.pod import ContainerClaim
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.container_parts import Sidecar
from kvtier_operator.planning.units import quantity

_HUGEPAGES: Final = "hugepages-"


def engine_resources(plan: Plan) -> dict[str, Any]:
    """The budget, without the huge pages that a sidecar maps, and the devices that the pod claims."""
    pages_elsewhere = bool(plan.engine.sidecars)
    claims = _claims(plan.resource.spec.engine)
    return {
        "requests": _without_hugepages(plan.budget.requests, drop=pages_elsewhere),
        "limits": _without_hugepages(plan.budget.limits, drop=pages_elsewhere),
        **({"claims": claims} if claims else {}),
    }


def _claims(engine: EngineSpec) -> list[dict[str, str]]:
    """All that the pod has, unless the resource says which."""
    taken = engine.resources.claims or [ContainerClaim(name=each.name) for each in engine.resource_claims]
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in taken]


def sidecar_resources(plan: Plan, sidecar: Sidecar) -> dict[str, Any]:
    """A sidecar's memory, and the huge pages of the tier that it holds. Requests equal limits."""
    pages = {name: size for name, size in plan.budget.limits.items() if name.startswith(_HUGEPAGES)}
    both = {"memory": quantity(sidecar.memory_bytes), **pages}
    return {"requests": both, "limits": dict(both)}


def _without_hugepages(resources: Mapping[str, str], *, drop: bool) -> dict[str, str]:
    return {name: resources[name] for name in sorted(resources) if not (drop and name.startswith(_HUGEPAGES))}
