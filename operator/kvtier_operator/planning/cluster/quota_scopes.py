"""Whether a ResourceQuota with scopes counts a pod."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kvtier_operator.planning.base.label_selector import mapping, mappings, requirement_holds

_PRIORITY_CLASS: Final = "PriorityClass"
_COMPUTE: Final = ("cpu", "memory")


def counts_pod(quota: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether all scopes of a quota hold for a pod; one that cannot be decided here counts no pod.

    Source: k8s.io/kubernetes, pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.

    Args:
        quota: The quota's spec.
        pod: The pod's spec, as the API server has it.
    """
    scopes = [{"scopeName": scope, "operator": "Exists"} for scope in quota.get("scopes") or ()]
    selected = mappings(mapping(quota.get("scopeSelector")).get("matchExpressions"))
    return all(_holds(requirement, pod) for requirement in (*scopes, *selected))


def _holds(requirement: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    scope, ends = requirement.get("scopeName"), pod.get("activeDeadlineSeconds") is not None
    match scope:
        case "Terminating":
            return ends
        case "NotTerminating":
            return not ends
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            name = pod.get("priorityClassName")
            return requirement_holds(
                {**requirement, "key": _PRIORITY_CLASS}, {_PRIORITY_CLASS: str(name)} if name else {}
            )
    return False


def _is_best_effort(pod: Mapping[str, Any]) -> bool:
    """Source: k8s.io/kubernetes, pkg/apis/core/v1/helper/qos."""
    return not any(
        str(amount) != "0"
        for container in _containers(pod)
        for kind in mapping(container.get("resources")).values()
        for name, amount in mapping(kind).items()
        if name in _COMPUTE
    )


def _containers(pod: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (*(pod.get("initContainers") or ()), *pod["containers"])
