"""What the operator asks the API server for: its kinds of objects, and whether it may read them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import quote

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import ForbiddenError, NotFoundError
from kvtier_common.kubernetes.client import Api
from kvtier_operator.reconcile.settings import AccessTimings

# What a pod refers to stands before it, as does what guards it; a RoleBinding is refused while its Role is
# not there; who scales a workload finds it there; requests find their way last.
REFERRED, BOUND, RUNNING, SCALED, ROUTED, ENTERED = range(6)
AUTOSCALERS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})
"""Of these a workload has one at most."""
_LOG: Final = logging.getLogger(__name__)


class Ref(NamedTuple):
    """Names one object: its kind, its namespace and its name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object."""

    api_version: str  # group and version, such as `apps/v1`
    kind: str  # name of the kind; no two in the table are the same
    plural: str  # name in URLs
    wave: int  # objects of one wave are applied together, after those of lower waves
    optional: bool = False  # whether it comes from a CRD that a cluster may lack

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
BY_NAME: Final[Mapping[str, Kind]] = {kind.kind: kind for kind in KINDS}
KVCACHETIER: Final = Kind("kvtier.dev/v1alpha1", "KVCacheTier", "kvcachetiers", REFERRED)
REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet", "replicasets", RUNNING)
POD: Final = Kind("v1", "Pod", "pods", RUNNING)
NODE: Final = Kind("v1", "Node", "nodes", RUNNING)
STORAGE_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", RUNNING)
NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", REFERRED)
LIMIT_RANGE: Final = Kind("v1", "LimitRange", "limitranges", REFERRED)
RESOURCE_QUOTA: Final = Kind("v1", "ResourceQuota", "resourcequotas", REFERRED)
EVENT: Final = Kind("v1", "Event", "events", RUNNING)
SECRET: Final = Kind("v1", "Secret", "secrets", REFERRED)
"""Made, and neither read nor watched."""


@dataclass(slots=True)
class Access:
    """Asks again and again whether KVCacheTiers can be read."""

    api: Api
    namespaces: Sequence[str]
    timings: AccessTimings
    _refusals: dict[str | None, str] = field(init=False)
    _readable: dict[str | None, asyncio.Event] = field(init=False)
    _somewhere: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        places = tuple(self.namespaces) or (None,)
        self._refusals = dict.fromkeys(places, "")
        self._readable = {place: asyncio.Event() for place in places}

    def refusals(self) -> list[str]:
        """Why KVCacheTiers cannot be read, one line each; nothing while they can in all namespaces."""
        return [*dict.fromkeys(why or "the API server was not asked yet" for why in self._refusals.values())]

    async def run(self) -> None:
        """Asks for all namespaces until cancelled, and logs each refusal once."""
        async with asyncio.TaskGroup() as group:
            for place in self._readable:
                group.create_task(self._keep_asking(place), name=f"access to {place or 'all namespaces'}")

    async def _keep_asking(self, place: str | None) -> None:
        while True:
            await self._ask(place)
            await asyncio.sleep(
                self.timings.refused_s if place in self._refusals else self.timings.readable_s
            )

    async def until_readable_somewhere(self) -> None:
        """Waits until KVCacheTiers of one namespace can be read."""
        await self._somewhere.wait()

    async def until_readable(self, place: str | None) -> None:
        """Waits until those of a namespace can be read, or of the whole cluster where None."""
        await self._readable[place].wait()

    async def _ask(self, place: str | None) -> None:
        try:
            await self.api.get(KVCACHETIER.path(place), {"limit": "1"})
        except KvtierError as error:
            if self._readable[place].is_set() and not isinstance(error, ForbiddenError | NotFoundError):
                return  # the server is away; the rights are what they were
            why = _why(place, error)
            if why not in self._refusals.values():
                _LOG.warning("%s; waiting", why)
            self._refusals[place] = why
        else:
            self._refusals.pop(place, None)
            self._readable[place].set()
            self._somewhere.set()


def _why(place: str | None, error: KvtierError) -> str:
    """Why it cannot be read, and what to do."""
    match error:
        case NotFoundError():
            return f"the CRD {KVCACHETIER.crd} is not installed: install it"
        case ForbiddenError() if place is not None:
            return (
                f"namespace {place} does not exist, or the operator has no rights there: make the namespace "
                f"and a Role in it, as the chart does for watchNamespaces, or leave it out ({error})"
            )
        case ForbiddenError():
            return (
                f"the operator has no rights to the whole cluster: give it the chart's ClusterRole ({error})"
            )
        case _:
            return str(error)
