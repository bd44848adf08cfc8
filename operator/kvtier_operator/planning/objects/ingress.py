"""Parts of the NetworkPolicies of picker and engines."""

from collections.abc import Iterable
from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""The API server's own label of a namespace, which nobody can choose."""


def ingress_policy(
    names: Names, name: str, component: Component, rules: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """A policy for who may connect to the pods of `component`; what they connect to is left alone."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(name, component),
        "spec": {
            "podSelector": {"matchLabels": names.selector(component)},
            "policyTypes": ["Ingress"],
            "ingress": [*rules],
        },
    }


def namespace(name: str) -> dict[str, Any]:
    """All pods of a namespace."""
    return {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: name}}}


def ports(first: int, last: int | None = None, protocol: str = "TCP") -> dict[str, Any]:
    """One port, or all from the first to the last."""
    end = {} if last is None or last == first else {"endPort": last}
    return {"protocol": protocol, "port": first, **end}
