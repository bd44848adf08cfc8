"""kvtier's own gateway: its image, its compute resources and where clients ask."""

from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.builtin import FLAVOR
from kvtier_operator.planning.objects.names import Names
from kvtier_operator.planning.pod.compute import Compute, compute
from kvtier_operator.planning.pod.images.image_source import ImageSource
from kvtier_operator.planning.router.router_plan import GatewayPlan, ModelRouterPlan
from kvtier_operator.planning.units import MIB, quantity, round_up
from kvtier_scorer.config.body_limits import BodyLimits, uploads_bytes

ENVOY_BYTES: Final = 64 * MIB
"""Of memory that Envoy itself takes, without a request; some 50 MiB as seen."""
COPIES: Final = 3
"""Of a body that Envoy gives a picker whole: the body, the message around it, and that as bytes."""
_REQUESTS: Final = {"cpu": "500m", "memory": "256Mi"}
_LEAST_LIMIT_BYTES: Final = 1024 * MIB
_PART_BYTES: Final = MIB
"""Of a body that goes through in parts. Upstream's pickers take no message above 4 MiB, grpc-go's default
(inference extension v1.5.0, pkg/epp/server/runserver.go)."""
_HEAP_PERCENT: Final = 90
"""Of the memory limit: the rest is what Envoy takes beside its heap."""
_MODEL_ROUTER_REQUESTS: Final = {"cpu": "100m", "memory": "192Mi"}
_MODEL_ROUTER_BYTES: Final = 256 * MIB
"""Without a request, some 140 MiB as seen, and what its transport holds at most."""
_MODEL_ROUTER_COPIES: Final = 2
"""Of a body: itself, and the parts in which it comes and goes."""


def plan_gateway(resource: KVCacheTier, images: ImageSource, bodies: BodyLimits) -> GatewayPlan | None:
    """The gateway; None where others take the requests."""
    wanted = resource.spec.router.standalone
    if wanted is None:
        return None
    whole = flavor_traits(resource.spec.router.flavor).takes_whole_bodies
    held_bytes = bodies.max_bytes if whole else _PART_BYTES
    most_bytes = uploads_bytes(bodies.max_bytes)
    limit_bytes = (ENVOY_BYTES + COPIES * most_bytes) * 100 // _HEAP_PERCENT
    limits = {"memory": quantity(max(_LEAST_LIMIT_BYTES, round_up(limit_bytes, MIB)))}
    resources = compute(Compute(_REQUESTS, limits), wanted.resources)
    heap_bytes = parse_bytes(resources.limits["memory"]) * _HEAP_PERCENT // 100
    held_together_bytes = max(held_bytes, min(most_bytes, (heap_bytes - ENVOY_BYTES) // COPIES))
    names = Names.of_resource(resource)
    scheme = "https" if wanted.tls_secret_name else "http"
    return GatewayPlan(
        image=wanted.image or images.envoy(),
        compute=resources,
        heap_bytes=heap_bytes,
        held_bytes=held_bytes,
        uploads_bytes=held_together_bytes if whole or wanted.models else None,
        url=f"{scheme}://{names.gateway}.{names.namespace}.svc/v1",
        model_router=_model_router(
            wanted, images, BodyLimits(bodies.max_bytes, max(bodies.max_bytes, held_together_bytes))
        ),
    )


def _model_router(wanted: Standalone, images: ImageSource, bodies: BodyLimits) -> ModelRouterPlan | None:
    if not wanted.models:
        return None
    needed_bytes = _MODEL_ROUTER_BYTES + _MODEL_ROUTER_COPIES * bodies.total_bytes
    limits = {"memory": quantity(round_up(needed_bytes, MIB))}
    return ModelRouterPlan(
        image=images.picker(FLAVOR, KVTIER_VERSION, tested=True),
        compute=Compute(_MODEL_ROUTER_REQUESTS, limits),
        routes={each.name: each.resource for each in wanted.models},
        body_limits=bodies,
    )
