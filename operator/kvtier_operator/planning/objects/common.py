"""What objects of several owners have in common."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel

from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan

EXT_PROC_PORT: Final = 9002
HEALTH_PORT: Final = 9003
METRICS_PORT: Final = 9090
"""Ports that upstream's pickers listen on by default."""

_USER: Final = 65532
"""That of distroless images, which Envoy's and upstream's pickers are built on."""
UNPRIVILEGED: Final = {
    "runAsNonRoot": True,
    "runAsUser": _USER,
    "runAsGroup": _USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of a pod that may do nothing."""
WITH_VOLUMES: Final = {**UNPRIVILEGED, "fsGroup": _USER}
"""The same of a pod that reads Secrets as files, or writes to a volume."""
_PROGRESS_DEADLINE_S: Final = 600
"""Kubernetes' default."""
NO_PRIVILEGES: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Security context of a container."""
SCRATCH: Final = {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}
"""Where a picker that compiles may write: the image of kvtier's own copies its kernels there, for numba takes
no cache that it cannot write to. The root file system stays read-only."""


_PLAIN_SERVICE: Final[Mapping[str, Any]] = {
    # Kubernetes' own defaults, written out: a field that is not sent stays as somebody else set it
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "publishNotReadyAddresses": False,
    "externalIPs": [],
}
"""What decides to whom a Service leads, and is nobody else's to set."""

_ROLLOUT: Final[Mapping[str, Any]] = {
    # Kubernetes' own defaults, written out: a field that is not sent stays as somebody else set it,
    # and after `kubectl rollout pause` no change of the resource would reach its pods
    "paused": False,
    "minReadySeconds": 0,
    "revisionHistoryLimit": 3,
}
"""What decides whether and when a Deployment's pods are replaced, and is nobody else's to set."""

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""The API server's own label of a namespace, which nobody can choose."""


def to_json(model: BaseModel) -> dict[str, Any]:
    """A part of a resource as it stands in its YAML."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def placement(plan: Plan, spec: EngineSpec | RouterSpec) -> dict[str, Any]:
    """Where a pod may run, its rank and its images' Secrets; fields that say nothing are left out."""
    fields = {
        "imagePullSecrets": [{"name": name} for name in plan.pull_secrets],
        "priorityClassName": spec.priority_class_name,
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [to_json(toleration) for toleration in spec.tolerations],
        "affinity": spec.affinity,
    }
    return {name: value for name, value in fields.items() if value}


def deployment(
    names: Names, name: str, component: Component, template: Mapping[str, Any], **fields: object
) -> dict[str, Any]:
    """A Deployment of pods of `component`; `fields` are of its spec beside what all have."""
    spec = {
        "selector": {"matchLabels": names.selector(component)},
        "progressDeadlineSeconds": _PROGRESS_DEADLINE_S,
        **_ROLLOUT,
        "template": template,
        **fields,
    }
    metadata = names.metadata(name, component)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def rolling_update(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    """How pods are replaced: how many there may be in excess meanwhile, and how many may be missing."""
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def spread_over_nodes(names: Names, component: Component) -> list[dict[str, Any]]:
    """A pod's `topologySpreadConstraints`."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": names.selector(component)},
        }
    ]


def env_from_field(name: str, path: str) -> dict[str, Any]:
    """A variable with a field of the pod itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def service(
    names: Names,
    name: str,
    component: Component,
    *service_ports: Mapping[str, Any],
    labels: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """A Service of all ready pods of `component` that have some labels beside."""
    selector = {**names.selector(component), **labels}
    spec = {**_PLAIN_SERVICE, "selector": selector, "ports": [*service_ports]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": names.metadata(name, component), "spec": spec}


def service_account(names: Names, name: str, component: Component) -> dict[str, Any]:
    """A ServiceAccount; a pod that needs its token mounts that itself."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(name, component),
        "automountServiceAccountToken": False,
    }


def config_map(names: Names, name: str, component: Component, files: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap with text by the name of a file."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(name, component),
        "data": files,
    }


def ingress_policy(
    names: Names, name: str, component: Component, rules: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """A policy for who may connect to the pods of `component`; what they connect to is left alone."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(name, component),
        "spec": {
            "podSelector": {"matchLabels": names.selector(component)},
            "policyTypes": ["Ingress"],
            "ingress": [*rules],
        },
    }


def namespace(name: str) -> dict[str, Any]:
    """All pods of a namespace."""
    return {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: name}}}


def ports(first: int, last: int | None = None, protocol: str = "TCP") -> dict[str, Any]:
    """One port, or all from the first to the last."""
    end = {} if last is None or last == first else {"endPort": last}
    return {"protocol": protocol, "port": first, **end}


def pod_disruption_budget(
    names: Names, name: str, component: Component, most_pods: int
) -> dict[str, Any] | None:
    """One pod at a time; None for a single one, which a budget would make undrainable."""
    if most_pods <= 1:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(name, component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": names.selector(component)}},
    }
