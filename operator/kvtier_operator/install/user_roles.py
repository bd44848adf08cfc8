"""ClusterRoles for people: who may view, edit or administer a namespace may do so with its KVCacheTiers."""

from typing import Any, Final

from kvtier_operator.api.crd import PLURAL
from kvtier_operator.api.resource import GROUP
from kvtier_operator.install.settings import Install

AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
"""Label of a role that another one, named after it, takes in (Kubernetes, aggregated ClusterRoles)."""


def view_role(install: Install) -> dict[str, Any]:
    """Joins Kubernetes' own roles view, edit and admin."""
    return _role(
        install, "view", ("view", "edit", "admin"), [PLURAL, f"{PLURAL}/status"], ["get", "list", "watch"]
    )


def edit_role(install: Install) -> dict[str, Any]:
    """Joins Kubernetes' own roles edit and admin, who may make Deployments as well."""
    verbs = ["create", "update", "patch", "delete", "deletecollection"]
    return _role(install, "edit", ("edit", "admin"), [PLURAL, f"{PLURAL}/scale"], verbs)


def _role(
    install: Install, name: str, joins: tuple[str, ...], resources: list[str], verbs: list[str]
) -> dict[str, Any]:
    labels = {**install.labels, **{f"{AGGREGATE}{each}": "true" for each in joins}}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{install.name}-{name}", "labels": labels},
        "rules": [{"apiGroups": [GROUP], "resources": resources, "verbs": verbs}],
    }
