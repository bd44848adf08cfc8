"""One Kubernetes object a file, each a pure function of the Plan; None where it is not wanted."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.autoscaler.pod_autoscaler import pod_autoscaler
from kvtier_operator.planning.objects.autoscaler.scaled_object import scaled_object
from kvtier_operator.planning.objects.engine.config_map import engine_config_map
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.objects.engine.network_policy import engine_network_policy
from kvtier_operator.planning.objects.engine.service import engine_service
from kvtier_operator.planning.objects.engine.service_account import engine_service_account
from kvtier_operator.planning.objects.gateway.http_route import http_routes
from kvtier_operator.planning.objects.gateway.inference_pool import inference_pool
from kvtier_operator.planning.objects.gateway.providers import gateway_provider_objects
from kvtier_operator.planning.objects.monitoring import monitoring_objects
from kvtier_operator.planning.objects.picker.config_map import picker_config_map
from kvtier_operator.planning.objects.picker.deployment import picker_deployment
from kvtier_operator.planning.objects.picker.network_policy import picker_network_policy
from kvtier_operator.planning.objects.picker.role import picker_role
from kvtier_operator.planning.objects.picker.role_binding import picker_role_binding
from kvtier_operator.planning.objects.picker.service import picker_service
from kvtier_operator.planning.objects.picker.service_account import picker_service_account
from kvtier_operator.planning.objects.pod_disruption_budget import pod_disruption_budget
from kvtier_operator.planning.plan import Plan


def build_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """The objects of one Plan, in the order to apply them: what a pod refers to comes before it.

    The engines come before the picker, and the route last, so that no request arrives before an answer can.
    """
    names = Names.of(plan)
    wanted = (
        engine_service_account(plan),
        picker_service_account(plan),
        picker_role(plan),
        picker_role_binding(plan),
        engine_network_policy(plan),
        picker_network_policy(plan),
        engine_config_map(plan),
        picker_config_map(plan),
        engine_service(plan),
        picker_service(plan),
        engine_deployment(plan),
        pod_disruption_budget(names, names.engine, Component.ENGINE, plan.resource.spec.most_replicas),
        pod_autoscaler(plan),
        scaled_object(plan),
        picker_deployment(plan),
        inference_pool(plan),
        *gateway_provider_objects(plan),
        *monitoring_objects(plan),
        *http_routes(plan),
    )
    return tuple(built for built in wanted if built is not None)
