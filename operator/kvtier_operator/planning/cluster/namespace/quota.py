"""ResourceQuotas, and what pods, volumes and objects count for in them.

Source of what is counted: k8s.io/kubernetes, pkg/quota/v1/evaluator/core, and
k8s.io/apiserver/pkg/quota/v1/generic for objects.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.node import whole
from kvtier_operator.planning.cluster.namespace.names import CPU, MEMORY, plain
from kvtier_operator.planning.cluster.namespace.workload import Claim
from kvtier_operator.planning.cluster.nodes.pod_needs import container_limits, container_requests, pod_total

_EPHEMERAL: Final = "ephemeral-storage"
_PLAIN: Final = (CPU, MEMORY, _EPHEMERAL)
_EXPLICIT: Final = frozenset(
    f"{side}{name}" for side in ("", "requests.", "limits.") for name in (CPU, MEMORY)
)
"""What every container has to set once a quota counts it."""
_OURS: Final = frozenset({"NotTerminating", "NotBestEffort"})
_NOT_OURS: Final = frozenset({"Terminating", "BestEffort"})
Usage = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota of a namespace; whole numbers, cpu in millicores.

    Attributes:
        name: Its name.
        hard: The most, by the quota's name of a resource.
        used: What is taken; empty where that is not looked at.
        scopes: Which pods it counts: those that are in all of these.
    """

    name: str
    hard: Usage
    used: Usage
    scopes: frozenset[str]

    @property
    def counts_ours(self) -> bool:
        """Whether kvtier's pods, which have requests and no deadline, are certain to be counted."""
        return self.scopes <= _OURS

    @property
    def open_scopes(self) -> tuple[str, ...]:
        """Scopes of which it cannot be told whether kvtier's pods are in them, such as a priority class."""
        return () if self.scopes & _NOT_OURS else tuple(sorted(self.scopes - _OURS))


def quota_from_object(document: Mapping[str, Any], *, with_used: bool = True) -> Quota:
    """A ResourceQuota as the API server has it (v1).

    Args:
        document: The object, as parsed from JSON.
        with_used: Whether what is taken now counts.
    """
    spec = document["spec"]
    used = (document.get("status") or {}).get("used") or {}
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return Quota(
        name=document["metadata"]["name"],
        hard=_whole(spec.get("hard") or {}),
        used=_whole(used) if with_used else {},
        scopes=frozenset([*(spec.get("scopes") or ()), *(each["scopeName"] for each in selected)]),
    )


def pod_usage(pod: Mapping[str, Any]) -> Counter[str]:
    """What one pod, as admitted, counts for."""
    requests, limits = pod_total(pod, container_requests), pod_total(pod, container_limits)
    return Counter({"pods": 1, "count/pods": 1, **_compute(requests, limits)})


def claim_usage(claim: Claim, default_class: str | None) -> Counter[str]:
    """What a volume that is made with a pod counts for.

    Args:
        claim: The volume.
        default_class: The cluster's default storage class, where there is one.
    """
    usage = {"persistentvolumeclaims": 1, "requests.storage": claim.storage_bytes}
    name = claim.storage_class or default_class
    of_class = {f"{name}.storageclass.storage.k8s.io/{key}": value for key, value in usage.items()}
    return Counter({**usage, "count/persistentvolumeclaims": 1, **(of_class if name else {})})


def object_usage(objects: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """What kvtier's objects count for, a ReplicaSet for each Deployment among them."""
    usage: Counter[str] = Counter()
    for each in objects:
        group, kind = each["apiVersion"].rpartition("/")[0], each["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        usage[f"count/{plural}.{group}" if group else f"count/{plural}"] += 1
        if not group:
            usage[plural] += 1
        if kind == "deployment":
            usage["count/replicasets.apps"] += 1
    return usage


def unset(quota: Quota, pod: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What every container has to set because this quota counts it, and the containers that do not."""
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    sets = {
        each["name"]: _compute(container_requests(each), container_limits(each)).keys() for each in containers
    }
    for name in sorted(quota.hard.keys() & _EXPLICIT):
        if lacking := tuple(container for container, has in sets.items() if name not in has):
            yield name, lacking


def _compute(requests: Usage, limits: Usage) -> dict[str, int]:
    usage = {f"requests.{name}": value for name, value in requests.items()}
    usage |= {name: value for name, value in requests.items() if _is_counted_plain(name)}
    return usage | {f"limits.{name}": value for name, value in limits.items() if name in _PLAIN}


def _is_counted_plain(name: str) -> bool:
    return name in _PLAIN or name.startswith("hugepages-")


def _whole(quantities: Mapping[str, str]) -> dict[str, int]:
    return {name: whole(plain(name), value) for name, value in quantities.items()}
