"""ClusterRoleBinding of the operator."""

from typing import Any, Final

from kvtier_operator.install.settings import Installation

RBAC_GROUP: Final = "rbac.authorization.k8s.io"


def cluster_role_binding(install: Installation) -> dict[str, Any]:
    """Binds the ClusterRole of the same name."""
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": install.cluster_metadata(),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": install.name},
        "subjects": [{"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}],
    }
