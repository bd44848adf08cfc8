"""RoleBinding of the picker."""

from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan

_GROUP: Final = "rbac.authorization.k8s.io"


def picker_role_binding(plan: Plan) -> dict[str, Any]:
    """Binds the picker's role to its ServiceAccount."""
    names = Names.of(plan)
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": names.picker},
        "subjects": [{"kind": "ServiceAccount", "name": names.picker, "namespace": names.namespace}],
    }
