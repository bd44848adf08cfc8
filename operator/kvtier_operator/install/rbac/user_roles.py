"""ClusterRoles for people: who may view, edit or administer a namespace may do so with its KVCacheTiers."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.resource import GROUP
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.settings import Installation

AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
"""Label of a role that another one, named after it, takes in (Kubernetes, aggregated ClusterRoles)."""


_MAKE: Final = ("create", "update", "patch", "delete", "deletecollection")


def view_role(install: Installation) -> dict[str, Any]:
    """Joins Kubernetes' own roles view, edit and admin."""
    seen = [PLURAL, f"{PLURAL}/status", f"{PLURAL}/scale"]
    return _role(install, "view", ("view", "edit", "admin"), {("get", "list", "watch"): seen})


def edit_role(install: Installation) -> dict[str, Any]:
    """Joins Kubernetes' own roles edit and admin, who may make Deployments as well."""
    rules = {_MAKE: [PLURAL], ("update", "patch"): [f"{PLURAL}/scale"]}
    return _role(install, "edit", ("edit", "admin"), rules)


def _role(
    install: Installation, name: str, joins: tuple[str, ...], rules: Mapping[tuple[str, ...], list[str]]
) -> dict[str, Any]:
    labels = {**install.labels, **{f"{AGGREGATE}{each}": "true" for each in joins}}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{install.name}-{name}", "labels": labels},
        "rules": [
            {"apiGroups": [GROUP], "resources": resources, "verbs": [*verbs]}
            for verbs, resources in rules.items()
        ],
    }
