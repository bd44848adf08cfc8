"""One backend a file: what each needs of the engine, its memory and its disk to serve the tiers."""

from collections.abc import Callable, Mapping
from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.backends.backend_plan import BackendPlan
from kvtier_operator.planning.backends.kvtier import plan_kvtier
from kvtier_operator.planning.backends.lmcache import lmcache_scratch_dirs, plan_lmcache
from kvtier_operator.planning.backends.lmcache_mp import plan_lmcache_mp
from kvtier_operator.planning.backends.native import plan_native
from kvtier_operator.planning.geometry import Geometry

_BACKENDS: Final[Mapping[Backend, Callable[[Spec, Geometry], BackendPlan]]] = {
    Backend.KVTIER: plan_kvtier,
    Backend.NATIVE: plan_native,
    Backend.LMCACHE: plan_lmcache,
    Backend.LMCACHE_MP: plan_lmcache_mp,
}


def plan_backend(spec: Spec, geometry: Geometry) -> BackendPlan:
    """What the resource's backend needs to serve its tiers.

    Args:
        spec: What is wanted.
        geometry: KV geometry of the model, for its tensor-parallel size.

    Returns:
        Arguments, environment, files, volumes and sizes, to be merged into the engine and the budget.
    """
    return _BACKENDS[spec.backend](spec, geometry)


def scratch_dirs(spec: Spec) -> tuple[str, ...]:
    """Folders that must be emptied before each start of the engine; none for most backends."""
    return lmcache_scratch_dirs(spec) if spec.backend is Backend.LMCACHE else ()
