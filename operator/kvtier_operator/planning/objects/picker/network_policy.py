"""NetworkPolicy of the picker: who may ask it learns what prompts are cached, and can make it busy."""

from typing import Any

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.providers import provider_of
from kvtier_operator.planning.objects.ingress import ingress_policy, namespace, ports
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT, HEALTH_PORT, METRICS_PORT
from kvtier_operator.planning.plan import Plan


def picker_network_policy(plan: Plan) -> dict[str, Any] | None:
    """ext_proc for the gateway's proxies alone; health and metrics say nothing of prompts and are for all.

    None where it is not known who the proxies are: a policy that shuts the gateway out stops all requests.
    """
    router = plan.resource.spec.router
    if not is_guarded(router):
        return None
    names, provider = Names.of(plan), provider_of(router)
    blocks = {*router.network_policy.ip_blocks, *provider.ip_blocks}
    own = {"podSelector": {"matchLabels": names.selector(Component.GATEWAY)}}
    peers = (
        *([own] if provider.own_proxies else []),
        *map(namespace, admitted_namespaces(plan.resource)),
        *({"ipBlock": {"cidr": each}} for each in sorted(blocks)),
    )
    asked = {"ports": [ports(EXT_PROC_PORT), *map(ports, provider.mesh_ports)], "from": [*peers]}
    shown = {"ports": [ports(HEALTH_PORT), ports(METRICS_PORT)]}
    return ingress_policy(names, names.picker, Component.PICKER, (asked, shown))


def is_guarded(router: RouterSpec) -> bool:
    """Whether the picker has a policy."""
    options = router.network_policy
    if options.enabled is not None:
        return options.enabled
    provider = provider_of(router)
    known = provider.own_proxies or provider.proxies_beside_gateway
    return known or bool(options.namespaces or options.ip_blocks)


def admitted_namespaces(resource: KVCacheTier) -> list[str]:
    """Whose pods may all ask it: its own namespace's, the Gateway's and those that are named.

    Behind kvtier's own gateway those that are named alone.
    """
    router = resource.spec.router
    named = router.network_policy.namespaces
    if router.standalone:
        return sorted(named)
    parent = router.gateway.parent_ref if router.gateway else None
    gateway = parent.namespace if parent else None
    return sorted({resource.metadata.namespace, *named, *([gateway] if gateway else [])})
