"""The kinds of objects that a plan can have: their paths on the API server, and the order to apply them in.

A new kind of object needs one line here; a unit test holds the table to what the planner builds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote


class Ref(NamedTuple):
    """Names one object: its kind, its namespace and its name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        api_version: Group and version, such as `apps/v1`.
        kind: Name of the kind; no two in the table are the same.
        plural: Name in URLs.
        wave: Objects of one wave are applied together, after those of lower waves.
        optional: Whether it comes from a CRD that a cluster may lack.
    """

    api_version: str
    kind: str
    plural: str
    wave: int
    optional: bool = False

    @property
    def group_path(self) -> str:
        """Path of the group and version."""
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"

    @property
    def crd(self) -> str:
        """Name of the CRD that would bring this kind."""
        return f"{self.plural}.{self.api_version.rpartition('/')[0]}"

    def path(self, namespace: str | None = None, name: str = "") -> str:
        """Path of one object, or of the collection in a namespace, or in all of them.

        A name is one part of it, whatever stands in it: a Role's may have a question mark.
        """
        place = f"/namespaces/{quote(namespace, safe='')}" if namespace is not None else ""
        return f"{self.group_path}{place}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


# What a pod refers to stands before it, as does what guards it; a RoleBinding is refused while its Role is
# not there; who scales a workload finds it there; requests find their way last.
REFERRED, BOUND, RUNNING, SCALED, ROUTED, ENTERED = range(6)

KINDS: Final = (
    Kind("v1", "ServiceAccount", "serviceaccounts", REFERRED),
    Kind("v1", "ConfigMap", "configmaps", REFERRED),
    Kind("v1", "Service", "services", REFERRED),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", REFERRED),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles", REFERRED),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", BOUND),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", BOUND),
    Kind("apps/v1", "Deployment", "deployments", RUNNING),
    Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", SCALED),
    Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", SCALED, optional=True),
    Kind("inference.networking.k8s.io/v1", "InferencePool", "inferencepools", ROUTED, optional=True),
    Kind("networking.istio.io/v1", "DestinationRule", "destinationrules", ROUTED, optional=True),
    Kind("networking.gke.io/v1", "HealthCheckPolicy", "healthcheckpolicies", ROUTED, optional=True),
    Kind("networking.gke.io/v1", "GCPBackendPolicy", "gcpbackendpolicies", ROUTED, optional=True),
    Kind("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", ROUTED, optional=True),
    Kind("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules", ROUTED, optional=True),
    Kind("monitoring.googleapis.com/v1", "PodMonitoring", "podmonitorings", ROUTED, optional=True),
    Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes", ENTERED, optional=True),
)
AUTOSCALERS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})
"""Of these a workload has one at most."""
BY_NAME: Final[Mapping[str, Kind]] = {each.kind: each for each in KINDS}

KVCACHETIER: Final = Kind("kvtier.dev/v1alpha1", "KVCacheTier", "kvcachetiers", REFERRED)
REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet", "replicasets", RUNNING)
POD: Final = Kind("v1", "Pod", "pods", RUNNING)
NODE: Final = Kind("v1", "Node", "nodes", RUNNING)
STORAGE_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", RUNNING)
EVENT: Final = Kind("v1", "Event", "events", RUNNING)


def ref_of(document: Mapping[str, Any], namespace: str = "") -> Ref:
    """The ref of an object; `namespace` is for one that names none."""
    metadata = document["metadata"]
    return Ref(document["kind"], metadata.get("namespace", namespace), metadata["name"])
