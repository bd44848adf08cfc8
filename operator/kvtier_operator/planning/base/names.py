"""Names and labels of the objects of one resource."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, Self

from kvtier_operator.api.resource import KVCacheTier

MANAGED_BY: Final = "kvtier"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
CONFIG_HASH: Final = "kvtier.dev/config-hash"
"""Annotation of a pod template: its pods are replaced when the configuration they read changes."""
SHARD_LABEL: Final = "kvtier.dev/shard"
"""Label of a store's pod: which of its servers it is, counted from 0."""
ATTACHED: Final = "kvtier.dev/attached"
"""Annotation of a pod that was given tiers: the name of its KVCacheTier, which is in the pod's namespace."""
ADDED: Final = "kvtier.dev/added"
"""Annotation of a pod that has the payload as a volume of its image: what its engine asks for more."""


POLICY_VERSIONS: Final = ("admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1")
"""Of the API of MutatingAdmissionPolicies, by preference: Kubernetes 1.36 has the first, 1.34 the second."""
ATTACH_OPT_IN: Final = {"kvtier.dev/attach": "enabled"}
"""Label of the namespaces whose pods may be given a tier."""


class Component(StrEnum):
    """What an object is for; the value of COMPONENT_LABEL."""

    BENCH = "bench"
    ENGINE = "engine"
    PICKER = "picker"
    GATEWAY = "gateway"
    ROUTER = "router"
    AUTOSCALER = "autoscaler"
    MONITORING = "monitoring"
    STORE = "store"


class OfAResource(Protocol):
    """A plan, say."""

    @property
    def resource(self) -> KVCacheTier:
        """The resource that it is made for."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the objects of one resource, all in its namespace."""

    resource: str  # the resource's own name; InferencePool and the first HTTPRoute carry it
    namespace: str  # the resource's namespace
    bench: str  # job that measures its tiers
    engine: str  # Deployment, Service, autoscaler and so on of the engines
    picker: str  # the same of the endpoint picker
    prefixes: str  # ConfigMap of the prefixes that its engines compute at start
    gateway: str  # the same of kvtier's own gateway
    store: str  # what the servers of a store that is made for its engines have in common, its Secret too

    @classmethod
    def of(cls, plan: OfAResource) -> Self:
        """Names of `plan`'s objects."""
        return cls.of_resource(plan.resource)

    @classmethod
    def of_resource(cls, resource: KVCacheTier) -> Self:
        """Names of the objects of `resource`."""
        name = resource.metadata.name
        return cls(
            resource=name,
            namespace=resource.metadata.namespace,
            bench=f"{name}-bench",
            engine=f"{name}-engine",
            picker=f"{name}-picker",
            prefixes=f"{name}-prefixes",
            gateway=gateway_name(name),
            store=f"{name}-store",
        )

    def store_shard(self, number: int) -> str:
        """Name of one of the store's servers, counted from 0: its Deployment and its Service."""
        return f"{self.store}-{number}"

    def store_host(self, number: int) -> str:
        """Where one of the store's servers is found, as its certificate has to call it."""
        return f"{self.store_shard(number)}.{self.namespace}.svc"

    def route(self, number: int) -> str:
        """Name of one of its HTTPRoutes, counted from 1."""
        return self.resource if number == 1 else f"{self.resource}-paths-{number}"

    def selector(self, component: Component) -> dict[str, str]:
        """Labels that select the pods of `component`; they never change while the resource lives."""
        return {
            "app.kubernetes.io/name": MANAGED_BY,
            INSTANCE_LABEL: self.resource,
            COMPONENT_LABEL: component.value,
        }

    def labels(self, component: Component) -> dict[str, str]:
        """Labels of an object of `component`."""
        return {
            **self.selector(component),
            "app.kubernetes.io/part-of": MANAGED_BY,
            MANAGED_BY_LABEL: MANAGED_BY,
        }

    def metadata(self, name: str, component: Component) -> dict[str, Any]:
        """Metadata of an object called `name`."""
        return {"name": name, "namespace": self.namespace, "labels": self.labels(component)}


def gateway_name(resource: str) -> str:
    """Name of the Service that clients ask, of a resource with a gateway of its own."""
    return f"{resource}-gateway"


def content_hash(*parts: str) -> str:
    """Hash of configuration text, short enough to read."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
