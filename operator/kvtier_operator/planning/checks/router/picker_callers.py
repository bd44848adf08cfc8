"""Whether the picker's NetworkPolicy lets the gateway's proxies in."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.objects.common import EXT_PROC_PORT
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.objects.picker import admitted_namespaces, is_guarded
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("picker-callers", "spec.router.networkPolicy")
_SHUT_OUT: Final = "GatewayMayBeShutOut"
_NOBODY_ELSE: Final = "lets nobody else in"


def picker_callers(given: CheckInput) -> CheckResult:
    """Health checks go elsewhere, so a picker that no request reaches looks ready."""
    router = given.spec.router
    provider, options = provider_of(router), router.network_policy
    if not is_guarded(router):
        return _VERDICTS.passed("any pod may ask the picker", reason="NotAskedFor")
    if provider.own_proxies:
        return _VERDICTS.passed("kvtier's own gateway may ask the picker")
    if options.ip_blocks:
        return _VERDICTS.passed("named addresses may ask the picker")
    namespaces = ", ".join(admitted_namespaces(given.resource))
    alone = f"pods of {namespaces} alone may ask the picker, at port {EXT_PROC_PORT}"
    if provider.calls_from:
        return _VERDICTS.warn(
            _SHUT_OUT,
            f"{alone}, and requests come from {provider.calls_from}: it looks healthy and none reaches it; "
            "give that range in ipBlocks",
            by_itself=_NOBODY_ELSE,
            field=f"{_VERDICTS.field}.ipBlocks",
        )
    if provider.proxies_beside_gateway or options.namespaces:
        return _VERDICTS.passed(f"pods of {namespaces} may ask the picker")
    return _VERDICTS.warn(
        _SHUT_OUT,
        f"{alone}: if the gateway's proxies are elsewhere (Envoy Gateway's are in envoy-gateway-system) it "
        "looks healthy and no request reaches it; name their namespace here, even if it is one of these, or "
        "their addresses in ipBlocks",
        by_itself=_NOBODY_ELSE,
        field=f"{_VERDICTS.field}.namespaces",
    )
