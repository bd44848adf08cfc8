"""kvtier's own gateway: its image, its compute resources and where clients ask."""

from typing import Final

from kvtier_operator.api.formats.quantity import parse_bytes
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.envoy.gateway import BODY_BYTES
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.names import Names
from kvtier_operator.planning.pod.compute import Compute, compute
from kvtier_operator.planning.pod.images.image_source import ImageSource
from kvtier_operator.planning.router.router_plan import GatewayPlan
from kvtier_operator.planning.units import KIB, MIB, quantity
from kvtier_scorer.config.body_limits import BodyLimits

ENVOY_BYTES: Final = 64 * MIB
"""Of memory that Envoy itself takes, without a request; some 50 MiB as seen."""
_REQUESTS: Final = {"cpu": "500m", "memory": "256Mi"}
_BASE_BYTES: Final = 768 * MIB
_AT_A_TIME: Final = 4
"""Of the largest bodies: one is held until a picker has read it. Answers are not held at all."""
_PART_BYTES: Final = MIB
"""Of a body that goes through in parts. Upstream's pickers take no message above 4 MiB, grpc-go's default
(inference extension v1.5.0, pkg/epp/server/runserver.go)."""
_WHOLE_BYTES: Final = 4 * MIB - 64 * KIB
"""The largest body that such a picker takes in one part, as it comes where its model decides the way."""
_HEAP_PERCENT: Final = 90
"""Of the memory limit: the rest is what Envoy takes beside its heap."""


def plan_gateway(resource: KVCacheTier, images: ImageSource, bodies: BodyLimits) -> GatewayPlan | None:
    """The gateway; None where others take the requests."""
    wanted = resource.spec.router.standalone
    if wanted is None:
        return None
    largest_bytes = max(BODY_BYTES, bodies.max_bytes)
    limits = {"memory": quantity(_BASE_BYTES + _AT_A_TIME * largest_bytes)}
    resources = compute(Compute(_REQUESTS, limits), wanted.resources)
    names = Names.of_resource(resource)
    in_parts_bytes = _WHOLE_BYTES if wanted.models else _PART_BYTES
    whole = flavor_traits(resource.spec.router.flavor).takes_whole_bodies
    scheme = "https" if wanted.tls_secret_name else "http"
    return GatewayPlan(
        image=wanted.image or images.envoy(),
        compute=resources,
        heap_bytes=parse_bytes(resources.limits["memory"]) * _HEAP_PERCENT // 100,
        held_bytes=largest_bytes if whole else in_parts_bytes,
        url=f"{scheme}://{names.gateway}.{names.namespace}.svc/v1",
    )
