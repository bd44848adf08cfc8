"""What gateway implementations need beside the HTTPRoute, one a file; `standalone` needs no other gateway.

A new provider is one file, one value of `GatewayProvider` and one line in `PROVIDERS`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kvtier_operator.api.spec.router import GatewayProvider, RouterSpec
from kvtier_operator.planning.objects.gateway.providers.agentgateway import AGENTGATEWAY
from kvtier_operator.planning.objects.gateway.providers.gke import GKE
from kvtier_operator.planning.objects.gateway.providers.istio import ISTIO
from kvtier_operator.planning.objects.gateway.providers.kgateway import KGATEWAY
from kvtier_operator.planning.objects.gateway.providers.none import NONE
from kvtier_operator.planning.objects.gateway.providers.provider import Provider
from kvtier_operator.planning.objects.gateway.providers.standalone import STANDALONE
from kvtier_operator.planning.plan import Plan

PROVIDERS: Final[Mapping[GatewayProvider, Provider]] = MappingProxyType(
    {
        GatewayProvider.NONE: NONE,
        GatewayProvider.ISTIO: ISTIO,
        GatewayProvider.GKE: GKE,
        GatewayProvider.KGATEWAY: KGATEWAY,
        GatewayProvider.AGENTGATEWAY: AGENTGATEWAY,
        GatewayProvider.STANDALONE: STANDALONE,
    }
)


def provider_of(router: RouterSpec) -> Provider:
    """The provider of the gateway; the one that needs nothing where there is no gateway."""
    return NONE if router.gateway is None else PROVIDERS[router.gateway.provider]


def gateway_provider(plan: Plan) -> Provider:
    """The same of a plan."""
    return provider_of(plan.resource.spec.router)


def gateway_provider_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """What the provider needs beside the HTTPRoute; nothing for most."""
    return gateway_provider(plan).objects(plan)
