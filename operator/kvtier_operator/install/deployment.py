"""The operator's namespace, pod, Service, what guards them, and the pod of `helm test`."""

import json
from typing import Any, Final

from kvtier_operator.api.resource import GROUP
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.rbac import account_object, binding_object, role_object
from kvtier_operator.install.settings import HEALTH_PORT, METRICS_PORT, Installation
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S
from kvtier_operator.planning.base.names import COMPONENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, Component
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document
from kvtier_operator.planning.images import KVTIER_REPOSITORY

_LEVEL: Final = "restricted"


def namespace(install: Installation) -> dict[str, Any]:
    """Nothing but restricted pods may run beside the operator (Pod Security Admission)."""
    modes = {f"pod-security.kubernetes.io/{mode}": _LEVEL for mode in ("enforce", "warn", "audit")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": install.namespace, "labels": {"app.kubernetes.io/part-of": "kvtier", **modes}},
    }


USER: Final = 65532
"""Nobody in particular; the user of distroless images."""
RESOURCES: Final = {
    # at rest a few millicores; planning and applying bursts
    "requests": {"cpu": "100m", "memory": "192Mi"},
    # 150 MiB resident with 1,000 resources, and half as much again
    "limits": {"memory": "256Mi"},
}
POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
_HEALTH: Final = {"httpGet": {"path": "/healthz", "port": "health"}, "timeoutSeconds": 5}
_READY: Final = {"httpGet": {"path": "/readyz", "port": "health"}, "timeoutSeconds": 5}


def deployment(install: Installation) -> dict[str, Any]:
    """Pods of which one reconciles; a new one is there before an old one goes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": install.metadata(),
        "spec": {
            "replicas": 1,
            "strategy": STRATEGY,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": install.selector},
            "template": {"metadata": {"labels": install.labels}, "spec": _pod(install)},
        },
    }


def _pod(install: Installation) -> dict[str, Any]:
    return {
        "serviceAccountName": install.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": POD_SECURITY,
        "containers": [_container(install)],
    }


def _container(install: Installation) -> dict[str, Any]:
    environment = {
        # empty: every namespace
        "KVTIER_NAMESPACES": "",
        "KVTIER_METRICS_PORT": str(METRICS_PORT),
        "KVTIER_HEALTH_PORT": str(HEALTH_PORT),
        "KVTIER_LOG_FORMAT": "json",
        "KVTIER_LOG_LEVEL": "info",
        # which of several pods reconciles, also of an old one and a new one
        "KVTIER_LEASE": install.name,
        "KVTIER_LEASE_SECONDS": str(DEFAULT_LEASE_S),
        # where this cluster gets kvtier's image from: engines' pods begin with it too
        "KVTIER_REPOSITORY": KVTIER_REPOSITORY,
        # the rest of them, with commas: NAME=REFERENCE, names of Secrets; empty: where they are published
        "KVTIER_IMAGE_REGISTRY": "",
        "KVTIER_IMAGES": install.images,
        "KVTIER_IMAGE_PULL_SECRETS": "",
        # where to ask for the configuration of a model that the catalogue lacks: none or hub
        "KVTIER_MODEL_CONFIGS": "none",
        # what resources may ask for, as JSON
        "KVTIER_POLICY": json.dumps(policy_document(OwnerPolicy()), separators=(",", ":"), sort_keys=True),
    }
    return {
        "name": "operator",
        "image": install.image,
        "command": ["python", "-m", "kvtier_operator.reconcile"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        # a slow API server may take a minute to answer the first lists
        "startupProbe": _HEALTH | {"periodSeconds": 2, "failureThreshold": 60},
        "readinessProbe": _READY | {"periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": _HEALTH | {"periodSeconds": 20, "failureThreshold": 6},
        "resources": RESOURCES,
        "securityContext": CONTAINER_SECURITY,
    }


def service(install: Installation) -> dict[str, Any]:
    """Its metrics; headless, since whoever scrapes asks the pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": install.metadata(),
        "spec": {
            "clusterIP": "None",
            "selector": install.selector,
            "ports": [{"name": "metrics", "protocol": "TCP", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    }


_DNS_PORT: Final = 53
_API_SERVER_PORTS: Final = (443, 6443)
"""Of the Service `kubernetes` and of the API server behind it: which one a policy sees differs by network."""

_ENGINES: Final = {MANAGED_BY_LABEL: MANAGED_BY, COMPONENT_LABEL: Component.ENGINE.value}
"""Any port of them: which one answers is each resource's choice."""


def network_policy(install: Installation) -> dict[str, Any]:
    """In: metrics (a node's own probes always come in). Out: the API server, names, engines."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.selector},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [_port(METRICS_PORT)]}],
            "egress": [
                {"ports": [_port(port) for port in _API_SERVER_PORTS]},
                {"ports": [_port(_DNS_PORT, "UDP"), _port(_DNS_PORT)]},
                {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": _ENGINES}}]},
            ],
        },
    }


def _port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number}


def pod_disruption_budget(install: Installation) -> dict[str, Any]:
    """One at a time may be evicted; the only one, too, as keeping it would block every drain of its node."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": install.metadata(),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": install.selector},
        },
    }


_TEST_RULES: Final = (
    # a dry run asks for the rights that it would take
    {"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["create"]},
    {"apiGroups": [GROUP], "resources": [f"{PLURAL}/workloads"], "verbs": ["use"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
)


def helm_test(install: Installation) -> dict[str, dict[str, Any]]:
    """What `helm test` makes: a pod that asks whether the installation works, and an account for it.

    Helm removes no hook with its release: what has rights goes when the test has ended. The pod ends with a
    status that says how it went, and stays to be read until the next one.
    """
    name, account = f"{install.name}-test", _hook(install, "-1", "before-hook-creation,hook-succeeded")
    asked = ["--namespace", install.namespace, "--deployment", install.name]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _hook(install, "0", "before-hook-creation"),
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": name,
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": POD_SECURITY,
            "containers": [
                {
                    "name": "test",
                    "image": install.image,
                    "command": ["python", "-m", "kvtier_operator.cli.cluster.check_install", *asked],
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                        "limits": {"memory": "256Mi"},
                    },
                    "securityContext": CONTAINER_SECURITY,
                }
            ],
        },
    }
    return {
        "service_account": account_object(account),
        "role": role_object("Role", account, _TEST_RULES),
        "role_binding": binding_object("RoleBinding", account, name, install.namespace),
        "pod": pod,
    }


def _hook(install: Installation, weight: str, deleted: str) -> dict[str, Any]:
    return {
        "name": f"{install.name}-test",
        "namespace": install.namespace,
        "annotations": {
            "helm.sh/hook": "test",
            "helm.sh/hook-weight": weight,
            "helm.sh/hook-delete-policy": deleted,
        },
        "labels": {"app.kubernetes.io/name": "kvtier-test", "app.kubernetes.io/part-of": "kvtier"},
    }
