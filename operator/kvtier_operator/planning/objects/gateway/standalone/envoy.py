"""What the Envoy of a resource's own gateway is to do."""

from typing import Final

from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.arguments.engine_tls import serves_tls
from kvtier_operator.planning.envoy.gateway import (
    Address,
    BodyMode,
    EngineService,
    Entrance,
    Gateway,
    Picker,
)
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.names import Names, gateway_name
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.engine_routes import passed_paths
from kvtier_operator.planning.router.router_plan import GatewayPlan

SERVING_PORT: Final = 8080
"""In the pod."""
HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443

CONFIG_FOLDER: Final = "/etc/kvtier/envoy"
CERTIFICATE_FOLDER: Final = "/etc/kvtier/certificate"
BOOTSTRAP_FILE: Final = "envoy.json"
CERTIFICATE_FILE: Final = "certificate.json"
_CHECK_S: Final = 1.0


def envoy_gateway(plan: Plan, wanted: Standalone, planned: GatewayPlan) -> Gateway:
    """Services are named as their own namespace knows them, whatever the cluster's domain.

    Args:
        plan: The plan.
        wanted: The gateway's settings.
        planned: The gateway, worked out.
    """
    names, router = Names.of(plan), plan.resource.spec.router
    whole = flavor_traits(router.flavor).takes_whole_bodies
    picker = Picker(
        Address(names.picker, EXT_PROC_PORT),
        failure_mode=router.failure_mode,
        body=BodyMode.BUFFERED if whole else BodyMode.STREAMED,
        tls=True,
        # a whole body is still there when the picker cannot be asked
        check_s=None if whole else _CHECK_S,
    )
    engines = EngineService(
        Address(names.engine, plan.engine.port), tls=serves_tls(plan.resource.spec.engine)
    )
    entrance = Entrance(
        heap_bytes=planned.heap_bytes,
        paths=passed_paths(router.gateway.extra_paths if router.gateway else ()),
        certificate=f"{CONFIG_FOLDER}/{CERTIFICATE_FILE}" if wanted.tls_secret_name else None,
        model_router=Address("127.0.0.1", EXT_PROC_PORT) if planned.model_router else None,
        others={
            resource: Address(gateway_name(resource), HTTP_PORT)
            for resource in sorted({each.resource for each in wanted.models})
        },
        tells_endpoint=router.expose_endpoint,
    )
    return Gateway(Address("0.0.0.0", SERVING_PORT), engines, picker, planned.held_bytes, entrance)  # noqa: S104 - a pod's
