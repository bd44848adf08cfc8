"""What `helm test` makes: a pod that asks whether the installation works, and an account for it."""

from typing import Any, Final

from kvtier_operator.api.resource import GROUP
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.deployment import CONTAINER_SECURITY, POD_SECURITY
from kvtier_operator.install.rbac import account_object, binding_object, role_object
from kvtier_operator.install.settings import Installation

_RULES: Final = (
    # a dry run asks for the rights that it would take
    {"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["create"]},
    {"apiGroups": [GROUP], "resources": [f"{PLURAL}/workloads"], "verbs": ["use"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
)
_MODULE: Final = "kvtier_operator.cli.cluster.check_install"
_BEFORE: Final = "-1"
_ANEW: Final = "before-hook-creation"
_NO_LONGER: Final = f"{_ANEW},hook-succeeded"
"""Helm removes no hook with its release: what has rights goes when the test has ended."""


def account_of_test(install: Installation) -> dict[str, Any]:
    """Nobody but the pod uses it."""
    return account_object(_metadata(install, _BEFORE, _NO_LONGER))


def role_of_test(install: Installation) -> dict[str, Any]:
    """In the operator's own namespace."""
    return role_object("Role", _metadata(install, _BEFORE, _NO_LONGER), _RULES)


def binding_of_test(install: Installation) -> dict[str, Any]:
    """Binds the two."""
    metadata = _metadata(install, _BEFORE, _NO_LONGER)
    return binding_object("RoleBinding", metadata, _name(install), install.namespace)


def pod_of_test(install: Installation) -> dict[str, Any]:
    """It ends with a status that says how it went, and stays to be read until the next one."""
    asked = ["--namespace", install.namespace, "--deployment", install.name]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(install, "0", _ANEW),
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": _name(install),
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "securityContext": POD_SECURITY,
            "containers": [
                {
                    "name": "test",
                    "image": install.image,
                    "command": ["python", "-m", _MODULE, *asked],
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                        "limits": {"memory": "256Mi"},
                    },
                    "securityContext": CONTAINER_SECURITY,
                }
            ],
        },
    }


def _name(install: Installation) -> str:
    return f"{install.name}-test"


def _metadata(install: Installation, weight: str, deleted: str) -> dict[str, Any]:
    return {
        "name": _name(install),
        "namespace": install.namespace,
        "annotations": {
            "helm.sh/hook": "test",
            "helm.sh/hook-weight": weight,
            "helm.sh/hook-delete-policy": deleted,
        },
        "labels": {"app.kubernetes.io/name": "kvtier-test", "app.kubernetes.io/part-of": "kvtier"},
    }
