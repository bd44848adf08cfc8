"""ServiceAccount of the engines: an identity without rights."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan


def engine_service_account(plan: Plan) -> dict[str, Any]:
    """No token is mounted and no role is bound: an engine talks to no API server."""
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "automountServiceAccountToken": False,
    }
