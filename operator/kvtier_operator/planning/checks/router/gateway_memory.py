"""Whether kvtier's own gateway has memory for a request."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.router.router_plan import COPIES, ENVOY_BYTES
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("gateway-memory", "spec.router.gateway.standalone.resources.limits.memory")
_SHORT: Final = "GatewayMemoryShort"


def gateway_memory(given: CheckInput) -> CheckResult:
    """An Envoy near its limit answers every request with 503, and is ready to do so."""
    gateway = given.router.gateway
    if gateway is None:
        return _VERDICTS.passed("kvtier runs no gateway")
    limit = gateway.compute.limits["memory"]
    if gateway.heap_bytes < ENVOY_BYTES:
        return _VERDICTS.reject(
            _SHORT,
            f"{limit} leaves a heap of {size(gateway.heap_bytes)}, and Envoy takes some {size(ENVOY_BYTES)} "
            "by itself: raise it",
        )
    if gateway.uploads_bytes is None:
        return _VERDICTS.passed(f"{limit}; bodies go through it in parts, and nothing counts them")
    needed_bytes = ENVOY_BYTES + COPIES * gateway.uploads_bytes
    if gateway.heap_bytes < needed_bytes:
        return _VERDICTS.warn(
            _SHORT,
            f"{limit} leaves a heap of {size(gateway.heap_bytes)}, and Envoy takes {size(needed_bytes)} "
            f"with one body of {size(gateway.held_bytes)}: it answers 503 then, to all; raise it",
            by_itself="keeps to the limit",
        )
    return _VERDICTS.passed(f"{limit} has room for {size(gateway.uploads_bytes)} of bodies that are coming")
