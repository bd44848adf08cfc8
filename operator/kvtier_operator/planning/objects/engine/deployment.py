"""Deployment of the engines."""

from typing import Any

from kvtier_operator.planning.base.merge import merged
from kvtier_operator.planning.base.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.objects.engine.config_map import files_hash
from kvtier_operator.planning.objects.engine.pod.container import engine_container
from kvtier_operator.planning.objects.engine.pod.pod_spec import engine_pod
from kvtier_operator.planning.objects.rollout import ROLLOUT
from kvtier_operator.planning.plan import Plan


def engine_deployment(plan: Plan) -> dict[str, Any]:
    """One pod a replica, replaced one at a time within the room that the old one leaves."""
    names = Names.of(plan)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "spec": {
            **_replicas(plan),
            "selector": {"matchLabels": names.selector(Component.ENGINE)},
            # GPUs, huge pages and local disks of a node cannot be had twice, so no pod comes in excess
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            # the next one may have to wait for the room of one that drains
            "progressDeadlineSeconds": plan.ending.grace_s
            + plan.budget.fetch_s
            + plan.budget.startup_s
            + 600,
            **ROLLOUT,
            "template": merged(planned_engine_template(plan), plan.resource.spec.engine.pod_template or {}),
        },
    }


def _replicas(plan: Plan) -> dict[str, int]:
    """How many; nothing where an autoscaler says so, whose number an apply would overwrite."""
    spec = plan.resource.spec
    return {} if spec.autoscaling else {"replicas": spec.replicas}


def planned_engine_template(plan: Plan) -> dict[str, Any]:
    """Template of its pods, without what the resource's own template adds."""
    return {"metadata": _template_metadata(plan), "spec": _pod(plan)}


def _template_metadata(plan: Plan) -> dict[str, Any]:
    labels = {"labels": Names.of(plan).labels(Component.ENGINE)}
    if not plan.engine.files:
        return labels
    return labels | {"annotations": {CONFIG_HASH: files_hash(plan)}}


def _pod(plan: Plan) -> dict[str, Any]:
    names = Names.of(plan)
    return engine_pod(plan, engine_container(plan)) | {
        "serviceAccountName": names.engine,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": names.selector(Component.ENGINE)},
            }
        ],
    }
