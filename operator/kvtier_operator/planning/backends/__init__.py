"""One backend a file: what each needs of the engine, its memory and its disk to serve the tiers.

A backend is a module of this package named after the member of `Backend`, in lower case, with `TRAITS` and
`plan`; nothing else names it.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from kvtier_operator.api.spec.tiers import Backend, one_of
from kvtier_operator.planning.backends.traits import BackendTraits

if TYPE_CHECKING:
    from kvtier_operator.api.resource import Spec
    from kvtier_operator.planning.base.tier_plan import BackendPlan
    from kvtier_operator.planning.model_shape.geometry import Geometry


class BackendModule(Protocol):
    """What a backend's module has."""

    TRAITS: BackendTraits

    def plan(self, spec: "Spec", geometry: "Geometry") -> "BackendPlan":
        """What the backend needs to serve the tiers of `spec`."""


@cache
def _module(backend: Backend) -> BackendModule:
    # imported when it is asked for: backends plan with what itself asks for their traits
    return cast("BackendModule", import_module(f"{__name__}.{backend.name.lower()}"))


def plan_backend(spec: "Spec", geometry: "Geometry") -> "BackendPlan":
    """What the resource's backend needs to serve its tiers, to be merged into the engine and the budget."""
    return _module(spec.backend).plan(spec, geometry)


def traits_of(backend: Backend) -> BackendTraits:
    """What is true of a backend whatever a resource says."""
    return _module(backend).TRAITS


def backends_that(has: Callable[[BackendTraits], object]) -> tuple[Backend, ...]:
    """The backends of which something is true."""
    return tuple(backend for backend in Backend if has(traits_of(backend)))


def any_backend_that(has: Callable[[BackendTraits], object]) -> str:
    """Those backends as advice names them: `KVTier or Native`."""
    return one_of(backends_that(has))
