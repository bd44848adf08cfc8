"""Role of an operator that serves some namespaces only."""

from collections.abc import Iterable
from typing import Any

from kvtier_operator.install.rbac.rules import Rule
from kvtier_operator.install.settings import Installation


def role(install: Installation, namespace: str, rules: Iterable[Rule]) -> dict[str, Any]:
    """Rights in one of the namespaces it serves."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": install.metadata() | {"namespace": namespace},
        "rules": [rule.manifest() for rule in rules],
    }
