"""ClusterRole of the operator."""

from collections.abc import Iterable
from typing import Any

from kvtier_operator.install.rbac.rules import Rule
from kvtier_operator.install.settings import Installation


def cluster_role(install: Installation, rules: Iterable[Rule]) -> dict[str, Any]:
    """Rights in every namespace, or to what belongs to none."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": install.cluster_metadata(),
        "rules": [rule.manifest() for rule in rules],
    }
