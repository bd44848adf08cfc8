"""kvtier itself: an Envoy and a Service take the place of a Gateway and its HTTPRoute."""

from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.providers.provider import Provider
from kvtier_operator.planning.objects.gateway.standalone.config_map import gateway_config_map, gateway_files
from kvtier_operator.planning.objects.gateway.standalone.deployment import gateway_deployment
from kvtier_operator.planning.objects.gateway.standalone.service import gateway_service
from kvtier_operator.planning.objects.pod_disruption_budget import pod_disruption_budget
from kvtier_operator.planning.plan import Plan


def _objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    wanted, planned = plan.resource.spec.router.standalone, plan.router.gateway
    if wanted is None or planned is None:
        return ()
    files = gateway_files(plan, wanted, planned)
    names = Names.of(plan)
    pdb = pod_disruption_budget(names, names.gateway, Component.GATEWAY, wanted.replicas)
    return (
        gateway_config_map(plan, files),
        gateway_service(plan, wanted),
        gateway_deployment(plan, wanted, planned, files),
        *([] if pdb is None else [pdb]),
    )


STANDALONE: Final = Provider(objects=_objects, own_proxies=True)
