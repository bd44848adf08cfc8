"""What the operator may do, and why: the one source of its roles in the chart, the manifests and the docs.

Not among them, on purpose: reading Secrets (pods read them, the operator only names them), `pods/exec`,
making and deleting pods. Neither `escalate` nor `bind`, with which the operator could make the picker's Role
without its rights: those Roles' names are not known beforehand, and without `resourceNames` either gives
everything.
"""

from dataclasses import dataclass
from typing import Any, Final

_SEE: Final = ("list", "watch")
_READ: Final = ("get", *_SEE)
_OWN: Final = (*_SEE, "create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role.

    Attributes:
        group: API group; empty for the core one.
        resources: Plural names of the kinds, or subresources.
        verbs: What may be done with them.
        reason: What the operator cannot do without it, in one line.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str

    def manifest(self) -> dict[str, Any]:
        """The rule as it stands in a Role."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


NAMESPACED: Final = (
    Rule(
        "kvtier.dev",
        ("kvcachetiers",),
        _READ,
        "what is wanted; and whether it is still, before a child that has vanished is made again",
    ),
    Rule(
        "kvtier.dev",
        ("kvcachetiers/status",),
        ("patch",),
        "what was done about it: conditions, replicas, tiers",
    ),
    Rule(
        "",
        ("configmaps", "serviceaccounts", "services"),
        _OWN,
        "children: configuration, identities and addresses of engines, picker and gateway; and the ConfigMap "
        "with a model's configuration that a resource names",
    ),
    Rule(
        "apps",
        ("deployments",),
        _OWN,
        "children: engines, picker and gateway, and how many of them are ready",
    ),
    Rule(
        "apps",
        ("replicasets",),
        ("get",),
        "whether a pod is an engine of its own Deployment, before it is asked what its tiers hold",
    ),
    Rule(
        "networking.k8s.io",
        ("networkpolicies",),
        _OWN,
        "children: who may ask the picker, and hear the engines' KV events",
    ),
    Rule(
        "autoscaling",
        ("horizontalpodautoscalers",),
        _OWN,
        "child: what says how many engines there are, with spec.autoscaling",
    ),
    Rule("keda.sh", ("scaledobjects",), _OWN, "child: the same where the cluster has KEDA"),
    Rule(
        "policy", ("poddisruptionbudgets",), _OWN, "children: a drain takes one engine or gateway at a time"
    ),
    Rule(
        "rbac.authorization.k8s.io",
        ("rolebindings", "roles"),
        _OWN,
        "children: what the picker may read, in its namespace; the API server lets nobody grant more than "
        "they hold",
    ),
    Rule(
        "inference.networking.k8s.io",
        ("inferencepools",),
        _OWN,
        "child: the pool that a route sends to",
    ),
    Rule(
        "gateway.networking.k8s.io",
        ("httproutes",),
        _OWN,
        "child: the route, with spec.router.gateway; others, to tell which of them gets its requests",
    ),
    Rule(
        "networking.istio.io",
        ("destinationrules",),
        _OWN,
        "child: TLS from Istio to the picker, with spec.router.gateway.provider istio",
    ),
    Rule(
        "networking.gke.io",
        ("gcpbackendpolicies", "healthcheckpolicies"),
        _OWN,
        "children: health check and timeout of GKE's load balancer, with provider gke",
    ),
    Rule(
        "monitoring.coreos.com",
        ("prometheusrules", "servicemonitors"),
        _OWN,
        "children: monitoring objects, with spec.observability",
    ),
    Rule(
        "monitoring.googleapis.com",
        ("podmonitorings",),
        _OWN,
        "children: what GKE's managed Prometheus scrapes, with spec.observability and provider gke",
    ),
    Rule("", ("pods",), _SEE, "why an engine is not ready (its containers' messages)"),
    Rule("", ("events",), ("create",), "what changed, for kubectl describe"),
)
"""What it asks itself, in each namespace that it serves."""

PICKERS: Final = (
    Rule("", ("pods",), ("get",), "what pickers choose among"),
    Rule("inference.networking.k8s.io", ("inferencepools",), ("get",), "the pool that a picker picks for"),
    Rule(
        "inference.networking.x-k8s.io",
        ("inferencemodelrewrites", "inferenceobjectives"),
        _READ,
        "upstream's pickers watch them",
    ),
    Rule(
        "llm-d.ai",
        ("inferencemodelrewrites", "inferenceobjectives"),
        _READ,
        "llm-d's picker watches them under its own group",
    ),
)
"""Held only to be granted to pickers, in each of those namespaces."""

PICKER_LEADER_ELECTION: Final = (
    Rule(
        "coordination.k8s.io",
        ("leases",),
        (*_READ, "create", "update", "patch", "delete"),
        "pickers with spec.router.replicas above 1 elect a leader",
    ),
    Rule("", ("events",), ("patch",), "leader election reports its changes as events"),
)
"""The same, apart from the rest, so that an installation without replicated pickers can do without it."""

DELETION_COST: Final = (
    Rule(
        "",
        ("pods",),
        ("patch",),
        "with spec.autoscaling, engines that hold least go first: their annotation "
        "controller.kubernetes.io/pod-deletion-cost",
    ),
)
"""Apart from the rest too: who may patch pods may change their images."""

CLUSTER: Final = (
    Rule(
        "",
        ("nodes",),
        _SEE,
        "NodesFit: labels, taints and allocatable memory, huge pages, disk and GPUs",
    ),
    Rule(
        "storage.k8s.io",
        ("storageclasses",),
        _SEE,
        "BudgetFits: whether the storage class of a volume is there",
    ),
)
"""Kinds that belong to no namespace."""

EVERYTHING: Final = (*NAMESPACED, *PICKERS, *PICKER_LEADER_ELECTION, *DELETION_COST, *CLUSTER)
"""What an installation has where nothing is left out."""
