"""One kind of tier a file, with what fits each and what engines report of them.

A kind is a module named after its member of `Tier`, in lower case, with `TRAITS`; nothing else names it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers import Ability
from kvtier_operator.planning.base.promql import Alert, Series
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry

Panel = tuple[str, str, Mapping[str, str]]
"""Title, unit and PromQL by legend, as `planning.objects.monitoring.grafana.panel` takes them."""
Serve = Callable[[Spec, Geometry, BackendPlan], BackendPlan]
"""What a backend needs, with what a tier adds to it."""


def by_backends(_spec: Spec, _geometry: Geometry, backend: BackendPlan) -> BackendPlan:
    """Add nothing: every backend plans this kind itself."""
    return backend


@dataclass(frozen=True, slots=True, kw_only=True)
class TierTraits:
    """What is true of one kind of tier."""

    serve: Serve  # gives it its bytes and says what a backend needs for it; `by_backends` where those do
    in_memory: bool = False  # whether it is the pod's memory: each chunk is rounded up, pages may be huge
    growing: str | None = None  # metric that is 1 while it is not what it will be
    pinned_bytes: str | None = None  # metric of what is locked of it
    degraded: str | None = None  # metric that is above 0 while the engine does without it, as it fails
    pays: str | None = None  # metric that is 0 while reading it takes longer than computing
    # of engines that tell of it
    alerts: Callable[[Series, TierPlan], Iterable[Alert]] = lambda _series, _tier: ()
    # on the dashboard of engines that tell of it
    panels: Callable[[Series], Iterable[Panel]] = lambda _series: ()
    # what a person should know of its part of the status; empty for nothing
    in_use: Callable[[Mapping[str, Any]], str] = lambda _status: ""

    @property
    def findings_metrics(self) -> tuple[str, ...]:
        """Metrics of which the operator reads what an engine found out of it."""
        return tuple(filter(None, (self.growing, self.pinned_bytes, self.pays)))


@cache
def traits_of_tier(tier: Tier) -> TierTraits:
    """What is true of a kind of tier."""
    if tier is Tier.GPU:
        return TierTraits(serve=by_backends)
    return cast("TierTraits", import_module(f"{__name__}.{tier.label}").TRAITS)


def serve_tiers(spec: Spec, geometry: Geometry, backend: BackendPlan) -> BackendPlan:
    """What the backend needs, with what the tiers add to it.

    Raises LookupError: Neither a tier's own file nor the backend says how many bytes it has.
    """
    for tier in spec.tiers.by_tier():
        backend = traits_of_tier(tier).serve(spec, geometry, backend)
        if tier not in backend.bytes_per_rank:
            raise LookupError(
                f"tier {tier.label} has no bytes_per_rank: backend {spec.backend} gives it none, nor does "
                f"`serve` of planning/tiers/{tier.label}.py"
            )
    return backend


def told_tiers(spec: Spec, tiers: TiersPlan) -> Iterator[tuple[TierTraits, TierPlan]]:
    """The tiers that engines of this backend tell of, as planned."""
    if Ability.TELLS_OF_TIERS in spec.backend.abilities:
        yield from ((traits_of_tier(tier), planned) for tier, planned in tiers.by_tier.items())
