"""ServiceAccount of the picker."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan


def picker_service_account(plan: Plan) -> dict[str, Any]:
    """The identity that the picker's role is bound to; its pod mounts the token itself."""
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "automountServiceAccountToken": False,
    }
