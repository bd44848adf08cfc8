"""Deployment of the gateway."""

from typing import Any, Final

from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.envoy.listener import READY_PATH
from kvtier_operator.planning.objects.gateway.standalone.envoy import (
    BOOTSTRAP_FILE,
    CERTIFICATE_FOLDER,
    CONFIG_FOLDER,
    SERVING_PORT,
)
from kvtier_operator.planning.objects.names import CONFIG_HASH, Component, Names, content_hash
from kvtier_operator.planning.objects.picker.deployment import SCRATCH
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT, HEALTH_PORT
from kvtier_operator.planning.objects.placement import placement
from kvtier_operator.planning.objects.rollout import ROLLOUT
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.router_plan import GatewayPlan, ModelRouterPlan

_USER: Final = 65532
"""The unprivileged user of distroless images."""
_WORKERS: Final = 2
"""Threads; by itself Envoy takes as many as the node has processors."""
_SECURITY_CONTEXT: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_PROGRESS_DEADLINE_S: Final = 600
"""Kubernetes' default."""


def gateway_deployment(
    plan: Plan, wanted: Standalone, planned: GatewayPlan, files: dict[str, str]
) -> dict[str, Any]:
    """Envoys that are all alike.

    Args:
        plan: The plan.
        wanted: The gateway's settings.
        planned: The gateway, worked out.
        files: Its configuration (`gateway_files`), with which its pods change.
    """
    names = Names.of(plan)
    selector = names.selector(Component.GATEWAY)
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **placement(plan, plan.resource.spec.router),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector},
            }
        ],
        **_model_router(plan, planned.model_router),
        "containers": [_container(plan, wanted, planned)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.gateway}},
            *_certificate(wanted),
            *([SCRATCH] if planned.model_router else []),
        ],
    }
    metadata = {
        "labels": names.labels(Component.GATEWAY),
        "annotations": {CONFIG_HASH: content_hash(*files.values())},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(names.gateway, Component.GATEWAY),
        "spec": {
            "replicas": wanted.replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": _PROGRESS_DEADLINE_S,
            **ROLLOUT,
            "template": {"metadata": metadata, "spec": pod},
        },
    }


def _model_router(plan: Plan, planned: ModelRouterPlan | None) -> dict[str, Any]:
    """A sidecar: there before Envoy, and until that has ended. It listens on the pod's loopback alone."""
    if planned is None:
        return {}
    limits = planned.body_limits
    probe = {"grpc": {"port": HEALTH_PORT, "service": "liveness"}}
    container = {
        "name": "model-router",
        "image": planned.image,
        "restartPolicy": "Always",
        "args": [
            "model-router",
            *(f"--route={resource}={model}" for model, resource in sorted(planned.routes.items())),
            *("--grpc-port", str(EXT_PROC_PORT)),
            *("--grpc-health-port", str(HEALTH_PORT)),
            *("--max-body-bytes", str(limits.max_bytes)),
            *("--total-body-bytes", str(limits.total_bytes)),
            *("--grace-period", str(plan.ending.drain_s)),
        ],
        "ports": [{"name": "grpc-health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
        "startupProbe": probe | {"periodSeconds": 1, "failureThreshold": 120},
        "livenessProbe": probe | {"periodSeconds": 10},
        "resources": {
            "requests": dict(planned.compute.requests),
            "limits": dict(planned.compute.limits),
        },
        "securityContext": _SECURITY_CONTEXT,
        "volumeMounts": [{"name": SCRATCH["name"], "mountPath": "/tmp"}],  # noqa: S108 - a mount
    }
    return {"initContainers": [container]}


def _container(plan: Plan, wanted: Standalone, planned: GatewayPlan) -> dict[str, Any]:
    # Told to end, Envoy ends at once: what it has under way has to be over by then.
    seconds = plan.ending.pre_stop_s + plan.ending.drain_s
    certificate = {"name": "certificate", "mountPath": CERTIFICATE_FOLDER, "readOnly": True}
    return {
        "name": "gateway",
        "image": planned.image,
        "command": ["envoy"],
        "args": [
            *("--config-path", f"{CONFIG_FOLDER}/{BOOTSTRAP_FILE}"),
            *("--concurrency", str(_WORKERS)),
            *("--log-level", "warning"),
            "--disable-hot-restart",
        ],
        "env": _env(wanted),
        "ports": [{"name": "http", "containerPort": SERVING_PORT, "protocol": "TCP"}],
        **_probes(wanted),
        "lifecycle": {"preStop": {"sleep": {"seconds": seconds}}},
        "resources": {
            "requests": dict(planned.compute.requests),
            "limits": dict(planned.compute.limits),
        },
        "securityContext": _SECURITY_CONTEXT,
        # what it says at its end is the pod's message in the status
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            *([certificate] if wanted.tls_secret_name else []),
        ],
    }


def _env(wanted: Standalone) -> list[dict[str, Any]]:
    """A pod's status tells of a Secret that is missing, or has no certificate, for a variable alone."""
    if not wanted.tls_secret_name:
        return []
    key = {"name": wanted.tls_secret_name, "key": "tls.crt"}
    return [{"name": "KVTIER_CERTIFICATE", "valueFrom": {"secretKeyRef": key}}]


def _certificate(wanted: Standalone) -> list[dict[str, Any]]:
    if not wanted.tls_secret_name:
        return []
    secret = {"secretName": wanted.tls_secret_name, "optional": True, "defaultMode": 0o440}
    return [{"name": "certificate", "secret": secret}]


def _probes(wanted: Standalone) -> dict[str, Any]:
    """Ready is who answers as clients are answered, with a certificate where there is one.

    An Envoy that has no memory left refuses requests, and lives. It listens once it has looked up the names
    of the Services, or given up: two minutes where no DNS server answers.
    """
    scheme = "HTTPS" if wanted.tls_secret_name else "HTTP"
    asked = {"httpGet": {"path": READY_PATH, "port": "http", "scheme": scheme}}
    return {
        "startupProbe": asked | {"periodSeconds": 2, "failureThreshold": 150},
        "livenessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 10},
        "readinessProbe": asked | {"periodSeconds": 2},
    }
