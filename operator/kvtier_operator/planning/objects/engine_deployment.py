"""Deployment of the engines."""

from typing import Any

from kvtier_operator.planning.objects.engine_config_map import files_hash
from kvtier_operator.planning.objects.engine_container import PRE_STOP_S, engine_container
from kvtier_operator.planning.objects.engine_doctor import engine_doctor
from kvtier_operator.planning.objects.engine_security import engine_pod_security
from kvtier_operator.planning.objects.engine_sidecar import engine_sidecars
from kvtier_operator.planning.objects.engine_volumes import engine_volumes
from kvtier_operator.planning.objects.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.plan import Plan


def engine_deployment(plan: Plan) -> dict[str, Any]:
    """One pod a replica, replaced one at a time within the room that the old one leaves."""
    names = Names.of(plan)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "spec": {
            "replicas": plan.resource.spec.replicas,
            "selector": {"matchLabels": names.selector(Component.ENGINE)},
            # GPUs, huge pages and local disks of a node cannot be had twice, so no pod comes in excess
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "progressDeadlineSeconds": plan.budget.startup_s + 600,
            "revisionHistoryLimit": 3,
            "template": {"metadata": _template_metadata(plan), "spec": _pod(plan)},
        },
    }


def _template_metadata(plan: Plan) -> dict[str, Any]:
    labels = {"labels": Names.of(plan).labels(Component.ENGINE)}
    if not plan.engine.files:
        return labels
    return labels | {"annotations": {CONFIG_HASH: files_hash(plan)}}


def _pod(plan: Plan) -> dict[str, Any]:
    names, engine = Names.of(plan), plan.resource.spec.engine
    pod: dict[str, Any] = {
        "serviceAccountName": names.engine,
        "automountServiceAccountToken": False,
        # vLLM reads VLLM_* variables; a Service called vllm would inject some
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.budget.drain_s + PRE_STOP_S,
        "securityContext": engine_pod_security(plan.resource.spec),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": names.selector(Component.ENGINE)},
            }
        ],
    }
    if engine.node_selector:
        pod["nodeSelector"] = dict(engine.node_selector)
    if engine.tolerations:
        pod["tolerations"] = [
            toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
            for toleration in engine.tolerations
        ]
    if engine.affinity:
        pod["affinity"] = dict(engine.affinity)
    return pod | {
        "initContainers": [engine_doctor(plan), *engine_sidecars(plan)],
        "containers": [engine_container(plan)],
        "volumes": engine_volumes(plan),
    }
