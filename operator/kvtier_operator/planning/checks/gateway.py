"""Whether the gateway takes the picker's answers, lets its requests through and has the memory for them."""

from typing import Final

from kvtier_operator.api.spec.router import GatewayProvider
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.objects.common import EXT_PROC_PORT
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.objects.picker import admitted_namespaces, is_guarded
from kvtier_operator.planning.router.router_plan import COPIES, ENVOY_BYTES
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult


@check("spec.router.gateway.provider")
def gateway_provider(parts: CheckInput) -> CheckResult:
    """Source for kgateway: kgateway-dev/kgateway, pull request 12437 and issue 12619."""
    gateway = parts.spec.router.gateway
    if gateway is None:
        return gateway_provider.passed("no route is made")
    if gateway.provider is GatewayProvider.STANDALONE:
        return gateway_provider.passed("kvtier runs the gateway itself")
    if gateway.provider is GatewayProvider.KGATEWAY:
        return gateway_provider.warn(
            "GatewayWithoutPools",
            "kgateway's Envoy takes InferencePools in version 2.1 and earlier only; "
            "from 2.2 use a Gateway of class agentgateway and provider: agentgateway",
            by_itself="makes the route all the same, and RouterReady has what the gateway says of it",
            weight=60,
        )
    if gateway.own_path and not provider_of(parts.spec.router).rewrites_paths:
        return gateway_provider.warn(
            "EveryPathPasses",
            f"{gateway.provider} takes an ownPath away and cannot put another path in its place, so clients "
            "reach all paths of the engines, /metrics and those that stop them too; give the resource "
            "hostnames in place of spec.router.gateway.ownPath",
            by_itself="passes all paths",
        )
    return gateway_provider.passed(f"the route is made for provider {gateway.provider}")


_SHORT: Final = "GatewayMemoryShort"


@check("spec.router.gateway.standalone.resources.limits.memory")
def gateway_memory(parts: CheckInput) -> CheckResult:
    """An Envoy near its limit answers every request with 503, and is ready to do so."""
    gateway = parts.router.gateway
    if gateway is None:
        return gateway_memory.passed("kvtier runs no gateway")
    limit = gateway.compute.limits["memory"]
    if gateway.heap_bytes < ENVOY_BYTES:
        return gateway_memory.reject(
            _SHORT,
            f"{limit} leaves a heap of {size(gateway.heap_bytes)}, and Envoy takes some {size(ENVOY_BYTES)} "
            "by itself: raise it",
            weight=20,
        )
    if gateway.uploads_bytes is None:
        return gateway_memory.passed(f"{limit}; bodies go through it in parts, and nothing counts them")
    needed_bytes = ENVOY_BYTES + COPIES * gateway.uploads_bytes
    if gateway.heap_bytes < needed_bytes:
        return gateway_memory.warn(
            _SHORT,
            f"{limit} leaves a heap of {size(gateway.heap_bytes)}, and Envoy takes {size(needed_bytes)} "
            f"with one body of {size(gateway.held_bytes)}: it answers 503 then, to all; raise it",
            by_itself="keeps to the limit",
            weight=20,
        )
    return gateway_memory.passed(
        f"{limit} has room for {size(gateway.uploads_bytes)} of bodies that are coming"
    )


@check("spec.router.gateway.standalone.models")
def other_models(parts: CheckInput) -> CheckResult:
    """Requests for the resource's own model or adapters would leave its engines idle."""
    standalone, model = parts.spec.router.standalone, parts.spec.model
    others = standalone.models if standalone else ()
    if not others:
        return other_models.passed("no other model is asked for here")
    own = {*model.names, *(adapter.name for adapter in model.lora_modules)}
    faults = []
    for index, other in enumerate(others):
        if other.name in own:
            fault = f"{other.name} is served here, by this resource; remove it"
            faults.append((f"{other_models.field}[{index}].name", fault))
        elif other.resource == parts.resource.metadata.name:
            fault = f"{other.resource} is this resource, which serves all that it does not send on; remove it"
            faults.append((f"{other_models.field}[{index}].resource", fault))
    if faults:
        return other_models.reject_each("ModelServedHere", faults)
    return other_models.passed(f"{len(others)} of other resources go on to their gateways")


_SHUT_OUT: Final = "GatewayMayBeShutOut"
_NOBODY_ELSE: Final = "lets nobody else in"


@check("spec.router.networkPolicy")
def picker_callers(parts: CheckInput) -> CheckResult:
    """Health checks go elsewhere, so a picker that no request reaches looks ready."""
    router = parts.spec.router
    provider, options = provider_of(router), router.network_policy
    if not is_guarded(router):
        return picker_callers.passed("any pod may ask the picker", reason="NotAskedFor")
    if provider.own_proxies:
        return picker_callers.passed("kvtier's own gateway may ask the picker")
    if options.ip_blocks:
        return picker_callers.passed("named addresses may ask the picker")
    namespaces = ", ".join(admitted_namespaces(parts.resource))
    alone = f"pods of {namespaces} alone may ask the picker, at port {EXT_PROC_PORT}"
    if provider.calls_from:
        return picker_callers.warn(
            _SHUT_OUT,
            f"{alone}, and requests come from {provider.calls_from}: it looks healthy and none reaches it; "
            "give that range in ipBlocks",
            by_itself=_NOBODY_ELSE,
            weight=50,
            field=f"{picker_callers.field}.ipBlocks",
        )
    if provider.proxies_beside_gateway or options.namespaces:
        return picker_callers.passed(f"pods of {namespaces} may ask the picker")
    return picker_callers.warn(
        _SHUT_OUT,
        f"{alone}: if the gateway's proxies are elsewhere (Envoy Gateway's are in envoy-gateway-system) it "
        "looks healthy and no request reaches it; name their namespace here, even if it is one of these, or "
        "their addresses in ipBlocks",
        by_itself=_NOBODY_ELSE,
        weight=50,
        field=f"{picker_callers.field}.namespaces",
    )
