"""Deployment of the picker."""

from typing import Any, Final

from kvtier_operator.api.router import Flavor
from kvtier_operator.planning.arguments.engine_tls import serves_tls
from kvtier_operator.planning.objects.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.objects.picker.config_map import FILE_NAME
from kvtier_operator.planning.objects.picker.ending import picker_ending, picker_strategy
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT, HEALTH_PORT, METRICS_PORT
from kvtier_operator.planning.objects.placement import placement
from kvtier_operator.planning.objects.rollout import ROLLOUT
from kvtier_operator.planning.plan import Plan

_CONFIG_FOLDER: Final = "/config"
_USER: Final = 65532
"""The unprivileged user of distroless images, which upstream's pickers are built on."""
_PROGRESS_DEADLINE_S: Final = 600
"""Kubernetes' default."""
_SCRATCH: Final = {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}
"""Where kvtier's own picker may write: its image copies the compiled kernels there, for numba takes no cache
that it cannot write to. The root file system stays read-only."""


def picker_deployment(plan: Plan) -> dict[str, Any]:
    """One picker, which a new one follows without a gap."""
    names = Names.of(plan)
    pod = {
        "serviceAccountName": names.picker,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.ending.grace_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **placement(plan, plan.resource.spec.router),
        "containers": [_container(plan)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.picker}},
            *([_SCRATCH] if _builtin(plan) else []),
        ],
    }
    metadata = {
        "labels": names.labels(Component.PICKER),
        "annotations": {CONFIG_HASH: plan.router.config_hash},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            "replicas": plan.resource.spec.router.replicas,
            "selector": {"matchLabels": names.selector(Component.PICKER)},
            "strategy": picker_strategy(plan),
            "progressDeadlineSeconds": _PROGRESS_DEADLINE_S,
            **ROLLOUT,
            "template": {"metadata": metadata, "spec": pod},
        },
    }


def _container(plan: Plan) -> dict[str, Any]:
    ports = {"grpc-ext-proc": EXT_PROC_PORT, "grpc-health": HEALTH_PORT, "http-metrics": METRICS_PORT}
    return {
        "name": "picker",
        "image": plan.router.image,
        "args": _args(plan),
        "env": [
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        **_probes(plan),
        **_pre_stop(plan),
        "resources": {
            "requests": dict(plan.router.resources.requests),
            "limits": dict(plan.router.resources.limits),
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            *([{"name": _SCRATCH["name"], "mountPath": "/tmp"}] if _builtin(plan) else []),  # noqa: S108 - a mount
        ],
    }


def _pre_stop(plan: Plan) -> dict[str, Any]:
    """Kubernetes before 1.33 refuses to sleep for no time."""
    seconds = picker_ending(plan).pre_stop_s
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds else {}


def _builtin(plan: Plan) -> bool:
    return plan.resource.spec.router.flavor is Flavor.BUILTIN


def _probes(plan: Plan) -> dict[str, Any]:
    """By the health service's own names for what is asked.

    Source: the charts of llm-d-router v0.10.0 and the inference extension v1.2.0 to v1.5.0. kvtier's own
    picker answers to `liveness` and `readiness` always, and compiles its kernels at start where the image's
    do not suit the node.
    """
    split = _builtin(plan) or plan.resource.spec.router.replicas > 1
    live, ready = ("liveness", "readiness") if split else ("inference-extension", "inference-extension")
    probes = {
        "livenessProbe": _probe(live) | {"initialDelaySeconds": 5, "periodSeconds": 10},
        "readinessProbe": _probe(ready) | {"periodSeconds": 2},
    }
    if not _builtin(plan):
        return probes
    probes["livenessProbe"].pop("initialDelaySeconds")
    return {"startupProbe": _probe(live) | {"periodSeconds": 2, "failureThreshold": 60}} | probes


def _probe(service: str) -> dict[str, Any]:
    return {"grpc": {"port": HEALTH_PORT, "service": service}}


def _args(plan: Plan) -> list[str]:
    """The same for every flavour, but for what kvtier's own picker has no use for.

    Booleans of upstream's need the form with `=`.

    Pickers serve TLS with a certificate of their own (`--secure-serving`, on by default), as every gateway
    expects of an InferencePool's picker: see `gateway_providers`.
    """
    names = Names.of(plan)
    router = plan.resource.spec.router
    args = [
        *("--pool-name", names.resource),
        *("--pool-namespace", names.namespace),
        *("--pool-group", POOL_GROUP),
        *("--config-file", f"{_CONFIG_FOLDER}/{FILE_NAME}"),
        *("--grpc-port", str(EXT_PROC_PORT)),
        *("--grpc-health-port", str(HEALTH_PORT)),
        *("--metrics-port", str(METRICS_PORT)),
        *picker_ending(plan).args,
    ]
    if _builtin(plan):
        return args
    # profiles, on the metrics port and on by default: memory's has parts of prompts
    args += ["--metrics-endpoint-auth=false", "--tracing=false", "--enable-pprof=false"]
    if router.flavor is Flavor.GAIE and serves_tls(plan.resource.spec.engine):
        args.append("--model-server-metrics-scheme=https")  # llm-d-router has it in its configuration
    if router.replicas > 1:
        args.append("--ha-enable-leader-election")
    return args
