"""Follows the pods of a pool: what the API server tells of them, as ready endpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_common.backoff import Backoff
from kvtier_common.kubernetes.answers import Document, Place, place_of
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.reflector import Reflector, ReflectorPolicy
from kvtier_scorer.picker.pods.pool_objects import Pool, pod_instance
from kvtier_scorer.picker.pods.ready_endpoints import ReadyEndpoints

_PODS: Final = "/api/v1/namespaces/{}/pods"
_OBJECT_BYTES: Final = 4 << 20
"""etcd keeps 1.5 MiB of an object, which as JSON can be more."""
_LIST_AFTER: Final = 5
"""Failures in a row from which the resource version itself is in doubt."""
USUAL_WAIT_S: Final = Backoff(first_s=0.1, longest_s=15.0).delay_s


def reflector_policy(wait_s: Callable[[int], float] = USUAL_WAIT_S) -> ReflectorPolicy:
    """What is done when something is wrong: pods are served as they last were, for as long as it takes.

    Args:
        wait_s: Seconds to wait after so many failures in a row.
    """
    return ReflectorPolicy(
        wait_s=wait_s,
        relists=lambda _, failures: failures >= _LIST_AFTER,
        ends_on=(),
        object_bytes=_OBJECT_BYTES,
        leaves_out=True,
        meanwhile="the pods stay as they were, trying again",
    )


def pod_reflector(  # noqa: PLR0913, PLR0917 - one argument a part
    api: Api,
    namespace: str,
    pool: Pool,
    endpoints: ReadyEndpoints,
    listed: Callable[[], None],
    wait_s: Callable[[int], float] = USUAL_WAIT_S,
) -> Reflector:
    """A reflector of the pods.

    Args:
        api: The API server.
        namespace: Of the pods.
        pool: Their labels and ports.
        endpoints: Is told of each.
        listed: Is called when all of them have been told.
        wait_s: Seconds to wait after so many failures in a row.
    """
    path, sink = _PODS.format(namespace), _PodSink(pool, endpoints, listed)
    return Reflector(api, path, path, {"labelSelector": pool.selector}, sink, reflector_policy(wait_s))


@dataclass(slots=True)
class _PodSink:
    """Hands pods on to the ready endpoints."""

    pool: Pool
    endpoints: ReadyEndpoints
    listed: Callable[[], None]

    def upsert(self, document: Document) -> None:
        self.endpoints.upsert(place_of(document)[1], pod_instance(document, self.pool.ports))

    def delete(self, document: Document) -> None:
        self.endpoints.delete(place_of(document)[1])

    def replace(self, places: set[Place], version: int) -> None:
        del version
        self.endpoints.replace({name for _, name in places})
        self.listed()
