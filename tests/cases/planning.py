"""Resources and plans for tests of the planner, written as a person would write the YAML."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.base.tier_plan import BackendPlan, TiersPlan
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.pod.budget import Budget, plan_budget
from kvtier_operator.planning.router.router_plan import plan_router
from kvtier_operator.planning.tiers import serve_tiers
from kvtier_operator.planning.tiers.capacity import plan_tiers

MODEL = "Qwen/Qwen3-32B"


def resource(
    model: str = MODEL,
    *,
    cpu: str = "100Gi",
    geometry: Mapping[str, Any] | None = None,
    model_volume: Mapping[str, Any] | None = None,
    model_source: Mapping[str, Any] | None = None,
    **spec: Any,  # noqa: ANN401 - further fields of the spec, as in YAML
) -> KVCacheTier:
    """A KVCacheTier with a CPU tier of that size; `tiers` and `model_fields` are merged into it."""
    given_model = {"name": model} | ({} if geometry is None else {"geometry": geometry})
    given_model |= {} if model_volume is None else {"volume": model_volume}
    given_model |= dict(model_source or {}) | dict(spec.pop("model_fields", {}))
    tiers = {"cpu": {"capacity": cpu}} | dict(spec.pop("tiers", {}))
    document = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": "case"},
        "spec": {"model": given_model, "tiers": tiers, **spec},
    }
    return parse_resource(document, "case")


def check_input(one: KVCacheTier, observed: Observed | None = None) -> CheckInput:
    """All that a check may look at, made as the planner makes it."""
    observed = observed or Observed()
    spec = one.planned_spec
    geometry = resolve_geometry(spec, observed)
    backend = serve_tiers(spec, geometry, plan_backend(spec, geometry))
    tiers = plan_tiers(one.spec, geometry, backend)
    return CheckInput(
        resource=one,
        observed=observed,
        geometry=geometry,
        backend=backend,
        tiers=tiers,
        budget=plan_budget(one.spec, geometry, tiers, backend),
        router=plan_router(one, geometry, tiers, observed.images),
    )


def plan_sizes(one: KVCacheTier, observed: Observed | None = None) -> tuple[TiersPlan, Budget, BackendPlan]:
    """Tiers, budget and backend of a resource."""
    given = check_input(one, observed)
    return given.tiers, given.budget, given.backend


def on(**machine: Any) -> Observed:  # noqa: ANN401 - Machine's fields
    """A local run on such a machine."""
    return Observed(machine=Machine(**machine))
