"""The backends that the API names itself, for it may not import their traits, are those that do it."""

from dataclasses import replace

import pytest
from tests.cases.kvcachetier import document

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.tiers import Ability, Backend
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.backends.parts import MOUNT_ROOT
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed

CLAIM = {"persistentVolumeClaim": {"claimName": "disk"}}


def planned(backend: Backend, disk: dict[str, object]) -> BackendPlan:
    """Of a disk tier that no rule of the API has seen."""
    changes = {
        "spec.backend": backend.value,
        "spec.engine": {"tensorParallelSize": 2},
        "spec.tiers.disk": {"capacity": "1Ti", "volume": CLAIM} | disk,
    }
    spec = KVCacheTier.model_validate(document(changes)).spec
    return plan_backend(spec, resolve_geometry(spec, Observed()))


@pytest.mark.parametrize("backend", Backend)
def test_those_that_spread_a_disk_tier_use_its_second_volume(backend: Backend) -> None:
    told = replace(planned(backend, {"extraVolumes": [CLAIM]}), mounts=(), notes=())
    assert f"{MOUNT_ROOT}/0" in repr(told)
    assert (f"{MOUNT_ROOT}/1" in repr(told)) == (Ability.SPREADS_DISK in backend.abilities)


@pytest.mark.parametrize("backend", Backend)
def test_those_that_bound_writes_are_told_the_bound(backend: Backend) -> None:
    assert (planned(backend, {"writesPerHour": "1Gi"}) != planned(backend, {})) == (
        Ability.BOUNDS_WRITES in backend.abilities
    )
