"""Which container of the engine's pod gets which resources."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.plan import Plan, Sidecar
from kvtier_operator.planning.units import quantity

_HUGEPAGES: Final = "hugepages-"


def engine_resources(plan: Plan) -> dict[str, Any]:
    """The budget, without the huge pages that a sidecar maps."""
    pages_elsewhere = bool(plan.engine.sidecars)
    return {
        "requests": _without_hugepages(plan.budget.requests, drop=pages_elsewhere),
        "limits": _without_hugepages(plan.budget.limits, drop=pages_elsewhere),
    }


def sidecar_resources(plan: Plan, sidecar: Sidecar) -> dict[str, Any]:
    """A sidecar's memory, and the huge pages of the tier that it holds. Requests equal limits."""
    pages = {name: size for name, size in plan.budget.limits.items() if name.startswith(_HUGEPAGES)}
    both = {"memory": quantity(sidecar.memory_bytes), **pages}
    return {"requests": both, "limits": dict(both)}


def _without_hugepages(resources: Mapping[str, str], *, drop: bool) -> dict[str, str]:
    return {name: resources[name] for name in sorted(resources) if not (drop and name.startswith(_HUGEPAGES))}
