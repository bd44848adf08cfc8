"""Deployment of the picker."""

from typing import Any, Final

from kvtier_operator.planning.arguments.engine_tls import serves_tls
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.ending import EndingInput, PickerEnding
from kvtier_operator.planning.flavors.traits import FlavorTraits
from kvtier_operator.planning.objects.gateway.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.gateway.inference_pool import has_pool
from kvtier_operator.planning.objects.names import CONFIG_HASH, Component, Names
from kvtier_operator.planning.objects.picker.config_map import FILE_NAME
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT, HEALTH_PORT, METRICS_PORT
from kvtier_operator.planning.objects.placement import placement
from kvtier_operator.planning.objects.rollout import ROLLOUT
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod_template.merge import merged

_CONFIG_FOLDER: Final = "/config"
_USER: Final = 65532
"""The unprivileged user of distroless images, which upstream's pickers are built on."""
_PROGRESS_DEADLINE_S: Final = 600
"""Kubernetes' default."""
SCRATCH: Final = {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}
"""Where a picker that compiles may write: the image of kvtier's own copies its kernels there, for numba takes
no cache that it cannot write to. The root file system stays read-only."""


def picker_deployment(plan: Plan) -> dict[str, Any]:
    """One picker, which a new one follows without a gap."""
    names = Names.of(plan)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            "replicas": plan.resource.spec.router.replicas,
            "selector": {"matchLabels": names.selector(Component.PICKER)},
            "strategy": _strategy(plan),
            "progressDeadlineSeconds": _PROGRESS_DEADLINE_S,
            **ROLLOUT,
            "template": merged(planned_picker_template(plan), plan.resource.spec.router.pod_template or {}),
        },
    }


def planned_picker_template(plan: Plan) -> dict[str, Any]:
    """Template of its pods, without what the resource's own template adds."""
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
            *([SCRATCH] if _traits(plan).compiles else []),
        ],
    }
    metadata = {
        "labels": names.labels(Component.PICKER),
        "annotations": {CONFIG_HASH: plan.router.config_hash},
    }
    return {"metadata": metadata, "spec": pod}


def _strategy(plan: Plan) -> dict[str, Any]:
    """The old one goes when the new one is ready; for some seconds each knows of its own requests only.

    Of pickers that elect a leader one alone is ever ready, and stays it until it goes: all new ones start
    beside the old ones and the first to find the leader gone takes over.
    """
    all_at_once = {"maxSurge": "100%", "maxUnavailable": "100%"}
    bounds = all_at_once if _several(plan) else {"maxSurge": 1, "maxUnavailable": 0}
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


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
            *([{"name": SCRATCH["name"], "mountPath": "/tmp"}] if _traits(plan).compiles else []),  # noqa: S108 - a mount
        ],
    }


def _pre_stop(plan: Plan) -> dict[str, Any]:
    """Kubernetes before 1.33 refuses to sleep for no time."""
    seconds = _ending(plan).pre_stop_s
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds else {}


def _traits(plan: Plan) -> FlavorTraits:
    return flavor_traits(plan.resource.spec.router.flavor)


def _ending(plan: Plan) -> PickerEnding:
    return _traits(plan).ending(
        EndingInput(plan.ending, plan.router.version, plan.resource.spec.router.replicas)
    )


def _several(plan: Plan) -> bool:
    return plan.resource.spec.router.replicas > 1


def _probes(plan: Plan) -> dict[str, Any]:
    """By the health service's own names for what is asked.

    Source: the charts of llm-d-router v0.10.0 and the inference extension v1.4.0 and v1.5.0. kvtier's own
    picker compiles its kernels at start where the image's do not suit the node.
    """
    split = _traits(plan).knows_probes or _several(plan)
    live, ready = ("liveness", "readiness") if split else ("inference-extension", "inference-extension")
    probes = {
        "livenessProbe": _probe(live) | {"initialDelaySeconds": 5, "periodSeconds": 10},
        "readinessProbe": _probe(ready) | {"periodSeconds": 2},
    }
    if not _traits(plan).compiles:
        return probes
    probes["livenessProbe"].pop("initialDelaySeconds")
    return {"startupProbe": _probe(live) | {"periodSeconds": 2, "failureThreshold": 60}} | probes


def _probe(service: str) -> dict[str, Any]:
    return {"grpc": {"port": HEALTH_PORT, "service": service}}


def _args(plan: Plan) -> list[str]:
    """The same for every flavour, and its own. Booleans of upstream's need the form with `=`.

    Pickers serve TLS with a certificate of their own (`--secure-serving`, on by default), as every gateway
    expects of an InferencePool's picker: see `objects/gateway/providers`.
    """
    traits = _traits(plan)
    return [
        *_engines(plan),
        *("--config-file", f"{_CONFIG_FOLDER}/{FILE_NAME}"),
        *("--grpc-port", str(EXT_PROC_PORT)),
        *("--grpc-health-port", str(HEALTH_PORT)),
        *("--metrics-port", str(METRICS_PORT)),
        *_ending(plan).args,
        *(traits.endpoint_args if plan.resource.spec.router.expose_endpoint else ()),
        *traits.args,
        *((traits.tls_args or ()) if serves_tls(plan.resource.spec.engine) else ()),
        *(("--ha-enable-leader-election",) if _several(plan) else ()),
    ]


def _engines(plan: Plan) -> list[str]:
    """What the picker chooses among."""
    names = Names.of(plan)
    if has_pool(plan.resource.spec.router):
        return [
            *("--pool-name", names.resource),
            *("--pool-namespace", names.namespace),
            *("--pool-group", POOL_GROUP),
        ]
    labels = names.selector(Component.ENGINE)
    return [
        *("--endpoint-selector", ",".join(f"{name}={labels[name]}" for name in sorted(labels))),
        *("--endpoint-target-ports", str(plan.engine.port)),
        *("--pool-namespace", names.namespace),
    ]
