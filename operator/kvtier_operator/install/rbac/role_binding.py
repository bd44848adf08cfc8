"""RoleBinding of an operator that serves some namespaces only."""

from typing import Any

from kvtier_operator.install.rbac.cluster_role_binding import RBAC_GROUP
from kvtier_operator.install.settings import Installation


def role_binding(install: Installation, namespace: str) -> dict[str, Any]:
    """Binds the Role of the same name, in one of the namespaces it serves."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": install.metadata() | {"namespace": namespace},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": install.name},
        "subjects": [{"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}],
    }
