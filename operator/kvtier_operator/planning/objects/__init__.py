"""Kubernetes objects by their owner, each a pure function of the Plan; None where it is not wanted."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.autoscaler import pod_autoscaler, scaled_object
from kvtier_operator.planning.objects.common import pod_disruption_budget, service_account
from kvtier_operator.planning.objects.engine.deployment import (
    engine_deployment,
    engine_network_policy,
    engine_service,
)
from kvtier_operator.planning.objects.engine.volumes import engine_config_map, prefixes_config_map
from kvtier_operator.planning.objects.gateway.http_route import http_routes
from kvtier_operator.planning.objects.gateway.providers import inference_pool, provider_of
from kvtier_operator.planning.objects.monitoring import monitoring_objects
from kvtier_operator.planning.objects.picker import (
    picker_config_map,
    picker_deployment,
    picker_network_policy,
    picker_role,
    picker_role_binding,
    picker_service,
)
from kvtier_operator.planning.objects.store import store_objects
from kvtier_operator.planning.plan import Plan


def build_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """The objects of one Plan, in the order to apply them: what a pod refers to comes before it.

    The engines come before the picker, and the route last, so that no request arrives before an answer can.
    """
    names = Names.of(plan)
    wanted = (
        # no role is bound to it: an engine talks to no API server
        service_account(names, names.engine, Component.ENGINE),
        service_account(names, names.picker, Component.PICKER),
        picker_role(plan),
        picker_role_binding(plan),
        engine_network_policy(plan),
        picker_network_policy(plan),
        engine_config_map(plan),
        prefixes_config_map(plan),
        picker_config_map(plan),
        engine_service(plan),
        picker_service(plan),
        *store_objects(plan),
        engine_deployment(plan),
        pod_disruption_budget(names, names.engine, Component.ENGINE, plan.resource.spec.most_replicas),
        pod_autoscaler(plan),
        scaled_object(plan),
        picker_deployment(plan),
        inference_pool(plan),
        *provider_of(plan.resource.spec.router).objects(plan),
        *monitoring_objects(plan),
        *http_routes(plan),
    )
    return tuple(built for built in wanted if built is not None)
