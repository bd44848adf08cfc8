"""Deployment of the operator."""

import json
from typing import Any, Final

from kvtier_operator.install.settings import HEALTH_PORT, IMAGE_REPOSITORY, METRICS_PORT, Installation
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, policy_document

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
_HEALTH: Final = {"httpGet": {"path": "/healthz", "port": "health"}, "timeoutSeconds": 5}
_READY: Final = {"httpGet": {"path": "/readyz", "port": "health"}, "timeoutSeconds": 5}


def deployment(install: Installation) -> dict[str, Any]:
    """One pod, never two at once: kopf has no leader election."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": install.metadata(),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
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
        # where this cluster gets kvtier's image from: engines' pods begin with it too
        "KVTIER_REPOSITORY": IMAGE_REPOSITORY,
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
