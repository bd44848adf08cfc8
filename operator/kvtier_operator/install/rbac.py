"""What the operator may do, and why: the one source of its roles in the chart, the manifests and the docs.

Not among them, on purpose: reading, changing or deleting Secrets (pods read them, the operator names them and
makes one for a store's password), `pods/exec`, making and deleting pods. Neither `escalate` nor `bind`, with
which the operator could make the picker's Role without its rights: those Roles' names are not known
beforehand, and without `resourceNames` either gives everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.resource import GROUP
from kvtier_operator.api.schema.crd import PLURAL
from kvtier_operator.install.settings import Installation

_SEE: Final = ("list", "watch")
_READ: Final = ("get", *_SEE)
_OWN: Final = (*_SEE, "create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role."""

    group: str  # API group; empty for the core one
    resources: tuple[str, ...]  # plural names of the kinds, or subresources
    verbs: tuple[str, ...]  # what may be done with them
    reason: str  # what the operator cannot do without it, in one line

    def manifest(self) -> dict[str, Any]:
        """The rule as it stands in a Role."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


def _child(group: str, resources: str, reason: str) -> Rule:
    """What the operator makes itself."""
    return Rule(group, tuple(resources.split()), _OWN, reason)


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
    _child(
        "",
        "configmaps serviceaccounts services",
        "children: configuration, identities and addresses of engines, picker and gateway; and the ConfigMap "
        "with a model's configuration that a resource names",
    ),
    _child("apps", "deployments", "children: engines, picker and gateway, and how many of them are ready"),
    Rule(
        "apps",
        ("replicasets",),
        ("get",),
        "whether a pod is an engine of its own Deployment, before it is asked what its tiers hold",
    ),
    _child(
        "networking.k8s.io",
        "networkpolicies",
        "children: who may ask the picker, and hear the engines' KV events",
    ),
    _child(
        "autoscaling",
        "horizontalpodautoscalers",
        "child: what says how many engines there are, with spec.autoscaling",
    ),
    _child("keda.sh", "scaledobjects", "child: the same where the cluster has KEDA"),
    _child("policy", "poddisruptionbudgets", "children: a drain takes one engine or gateway at a time"),
    _child(
        "rbac.authorization.k8s.io",
        "rolebindings roles",
        "children: what the picker may read, in its namespace; the API server lets nobody grant more than "
        "they hold",
    ),
    _child("inference.networking.k8s.io", "inferencepools", "child: the pool that a route sends to"),
    _child(
        "gateway.networking.k8s.io",
        "httproutes",
        "child: the route, with spec.router.gateway; others, to tell which of them gets its requests",
    ),
    _child(
        "networking.istio.io",
        "destinationrules",
        "child: TLS from Istio to the picker, with spec.router.gateway.provider istio",
    ),
    _child(
        "networking.gke.io",
        "gcpbackendpolicies healthcheckpolicies",
        "children: health check and timeout of GKE's load balancer, with provider gke",
    ),
    _child(
        "monitoring.coreos.com",
        "prometheusrules servicemonitors",
        "children: monitoring objects, with spec.observability",
    ),
    _child(
        "monitoring.googleapis.com",
        "podmonitorings",
        "children: what GKE's managed Prometheus scrapes, with spec.observability and provider gke",
    ),
    Rule("", ("pods",), _SEE, "why an engine is not ready (its containers' messages)"),
    Rule(
        "",
        ("limitranges", "resourcequotas"),
        ("list",),
        "with spec.attach: whether pods may ask for as much more as the tier takes",
    ),
    Rule("", ("namespaces",), ("get",), "with spec.attach: whether the namespace lets its pods be changed"),
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

STORE_PASSWORD: Final = (
    Rule(
        "",
        ("secrets",),
        ("create",),
        "with spec.tiers.remote.managed, the Secret with the store's password: made once, never read",
    ),
)
"""Apart from the rest too: a resource may name a Secret that somebody else makes."""

CLUSTER: Final = (
    Rule("", ("nodes",), _SEE, "NodesFit: labels, taints and allocatable memory, huge pages, disk and GPUs"),
    Rule(
        "storage.k8s.io",
        ("storageclasses",),
        _SEE,
        "BudgetFits: whether the storage class of a volume is there",
    ),
    Rule(
        "admissionregistration.k8s.io",
        ("mutatingadmissionpolicies",),
        ("list",),
        "with spec.attach: whether the cluster has the policy by which pods are given a tier",
    ),
)
"""Kinds that belong to no namespace."""

LEADER_ELECTION: Final = (
    Rule(
        "coordination.k8s.io",
        ("leases",),
        ("get", "create", "update"),
        "which of several operators reconciles",
    ),
)
"""In the operator's own namespace, by a Role of its own."""

EVERYTHING: Final = (
    *NAMESPACED,
    *PICKERS,
    *PICKER_LEADER_ELECTION,
    *DELETION_COST,
    *STORE_PASSWORD,
    *CLUSTER,
)
"""What an installation has where nothing is left out."""


_GROUP: Final = "rbac.authorization.k8s.io"
AGGREGATE: Final = f"{_GROUP}/aggregate-to-"
"""Label of a role that another one, named after it, takes in (Kubernetes, aggregated ClusterRoles)."""
_MAKE: Final = ("create", "update", "patch", "delete", "deletecollection")


def account_object(metadata: dict[str, Any]) -> dict[str, Any]:
    """A ServiceAccount, of which only a pod that mounts it itself gets a token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def role_object(kind: str, metadata: dict[str, Any], rules: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A Role or ClusterRole."""
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding_object(kind: str, metadata: dict[str, Any], name: str, namespace: str) -> dict[str, Any]:
    """A binding of the given kind, of the role and the namespace's account that have the same name."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _GROUP, "kind": kind.removesuffix("Binding"), "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def service_account(install: Installation) -> dict[str, Any]:
    """The operator's."""
    return account_object(install.metadata())


def cluster_role(install: Installation, rules: Iterable[Rule]) -> dict[str, Any]:
    """Rights in every namespace, or to what belongs to none."""
    return role_object("ClusterRole", install.cluster_metadata(), (rule.manifest() for rule in rules))


def cluster_role_binding(install: Installation) -> dict[str, Any]:
    """Binds the ClusterRole of the same name."""
    return binding_object("ClusterRoleBinding", install.cluster_metadata(), install.name, install.namespace)


def role(install: Installation, namespace: str, rules: Iterable[Rule]) -> dict[str, Any]:
    """Rights in one of the namespaces it serves."""
    metadata = install.metadata() | {"namespace": namespace}
    return role_object("Role", metadata, (rule.manifest() for rule in rules))


def role_binding(install: Installation, namespace: str) -> dict[str, Any]:
    """Binds the Role of the same name, in one of the namespaces it serves."""
    metadata = install.metadata() | {"namespace": namespace}
    return binding_object("RoleBinding", metadata, install.name, install.namespace)


def leader_role(install: Installation) -> dict[str, Any]:
    """Rights in its own namespace."""
    return role_object("Role", _leader(install), (rule.manifest() for rule in LEADER_ELECTION))


def leader_role_binding(install: Installation) -> dict[str, Any]:
    """Binds it."""
    binding = binding_object("RoleBinding", _leader(install), install.name, install.namespace)
    return binding | {"roleRef": binding["roleRef"] | {"name": f"{install.name}-leader"}}


def _leader(install: Installation) -> dict[str, Any]:
    return install.metadata() | {"name": f"{install.name}-leader"}


def view_role(install: Installation) -> dict[str, Any]:
    """Joins Kubernetes' own roles view, edit and admin."""
    resources = [PLURAL, f"{PLURAL}/status", f"{PLURAL}/scale"]
    return _user_role(install, "view", ("view", "edit", "admin"), {("get", "list", "watch"): resources})


def edit_role(install: Installation) -> dict[str, Any]:
    """Joins Kubernetes' own roles edit and admin, who may make Deployments as well."""
    rules = {_MAKE: [PLURAL], ("update", "patch"): [f"{PLURAL}/scale"]}
    return _user_role(install, "edit", ("edit", "admin"), rules)


def _user_role(
    install: Installation, name: str, joins: tuple[str, ...], rules: Mapping[tuple[str, ...], list[str]]
) -> dict[str, Any]:
    labels = {**install.labels, **{f"{AGGREGATE}{role}": "true" for role in joins}}
    return role_object(
        "ClusterRole",
        {"name": f"{install.name}-{name}", "labels": labels},
        ({"apiGroups": [GROUP], "resources": names, "verbs": [*verbs]} for verbs, names in rules.items()),
    )
