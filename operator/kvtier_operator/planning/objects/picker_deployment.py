"""Deployment of the picker."""

from typing import Any, Final

from kvtier_operator.planning.objects.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.objects.picker_config_map import FILE_NAME
from kvtier_operator.planning.objects.picker_ports import EXT_PROC_PORT, HEALTH_PORT, METRICS_PORT
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import MIB, quantity, round_up

_CONFIG_FOLDER: Final = "/config"
_USER: Final = 65532
"""The unprivileged user of distroless images, which upstream's pickers are built on."""
_BASE_BYTES: Final = 512 * MIB
_BYTES_PER_ENTRY: Final = 512
"""An allowance for an LRU element, its map slot and the pods of its hash; not measured."""
_DEFAULT_ENTRIES: Final = 31250
"""Entries a pod where the picker takes them from the engine: upstream's default."""
_LEAST_PODS: Final = 8
"""Engines that the picker's memory allows for at least."""


def picker_deployment(plan: Plan) -> dict[str, Any]:
    """Recreated, never rolled: two pickers would each know half of what the engines hold."""
    names = Names.of(plan)
    pod = {
        "serviceAccountName": names.picker,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.budget.drain_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(plan)],
        "volumes": [{"name": "config", "configMap": {"name": names.picker}}],
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
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 3,
            "template": {"metadata": metadata, "spec": pod},
        },
    }


def _container(plan: Plan) -> dict[str, Any]:
    elected = plan.resource.spec.router.replicas > 1
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
        "livenessProbe": _probe("liveness" if elected else "inference-extension")
        | {"initialDelaySeconds": 5, "periodSeconds": 10},
        "readinessProbe": _probe("readiness" if elected else "inference-extension") | {"periodSeconds": 2},
        "resources": _resources(plan),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG_FOLDER, "readOnly": True}],
    }


def _probe(service: str) -> dict[str, Any]:
    """Source: the charts of llm-d-router v0.10.0 and the inference extension v1.2.0 to v1.5.0."""
    return {"grpc": {"port": HEALTH_PORT, "service": service}}


def _args(plan: Plan) -> list[str]:
    """The same for every flavour; booleans need the form with `=`.

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
        "--metrics-endpoint-auth=false",
        "--tracing=false",
    ]
    if router.replicas > 1:
        args.append("--ha-enable-leader-election")
    return args


def _resources(plan: Plan) -> dict[str, Any]:
    """Memory for the index of every engine; processor time may burst.

    The number of engines is rounded up to a power of two: other resources are another pod, and a picker that
    restarts forgets its index, which scaling the engines must not cost each time.
    """
    entries = plan.router.entries
    known = [size for size in (entries.gpu_prefix, entries.cpu_prefix, entries.disk_prefix) if size]
    per_pod = sum(known) + (_DEFAULT_ENTRIES if entries.gpu_prefix is None else 0)
    pods = max(_LEAST_PODS, 1 << (plan.resource.spec.replicas - 1).bit_length())
    index = per_pod * pods * _BYTES_PER_ENTRY
    memory = round_up(_BASE_BYTES + index, 64 * MIB)
    return {
        "requests": {"cpu": "1", "memory": quantity(memory)},
        "limits": {"memory": quantity(2 * memory)},
    }
