"""Reads what limits a namespace, as far as the rights of the user go."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from kubernetes import client
from kubernetes.config import new_client_from_config
from urllib3.exceptions import HTTPError

from kvtier_common.errors import PermanentError, RetryableError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.cluster.namespace.limit_range import limit_range_from_object
from kvtier_operator.planning.cluster.namespace.namespace import Namespace, demand, refusals
from kvtier_operator.planning.cluster.namespace.quota import quota_from_object
from kvtier_operator.planning.cluster.namespace.storage import storage_class_from_object
from kvtier_operator.planning.cluster.namespace.workload import DEPLOYMENT, Workload, workload
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.names import COMPONENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.planning.plan import Plan

if TYPE_CHECKING:
    from kvtier_operator.planning.cluster.namespace.demand import Demand

_OPTION: Final = "--against-namespace"
_TIMEOUT_S: Final = 10
_MOST_BYTES: Final = 16 << 20
"""Of an answer."""


class ClusterError(PermanentError):
    """There is no cluster to look at."""


class ClusterFailedError(RetryableError):
    """The cluster does not answer, or not with what was asked for."""


def with_namespace_checks(name: str, plans: Iterable[Plan], context: str | None = None) -> list[Plan]:
    """The Plans with the namespace's refusals among their checks; its quotas are shared by all of them.

    Raises:
        InvalidInputError: There is no such namespace.
        ClusterError: There is no kubeconfig to use.
        ClusterFailedError: The cluster does not answer.
    """
    found: list[Plan] = []
    before: list[Demand] = []
    for one in plans:
        seen = read_namespace(name, one, context)
        found.append(replace(one, checks=(*one.checks, *refusals(one, seen, before))))
        before.append(demand(one, seen))
    return found


def read_namespace(name: str, plan: Plan, context: str | None = None) -> Namespace:
    """What limits a Plan's pods in a namespace of the kubeconfig's cluster.

    Raises:
        InvalidInputError: There is no such namespace.
        ClusterError: There is no kubeconfig to use.
        ClusterFailedError: The cluster does not answer.
    """
    try:
        api = new_client_from_config(os.environ.get("KUBECONFIG"), context)
    except Exception as error:  # what it raises depends on what stands in the file
        why = str(error).rstrip(".")
        raise ClusterError(f"{_OPTION}: no cluster to look at: {why}; set KUBECONFIG") from error
    with api:
        try:
            return _NamespaceReader(api, name).at(plan)
        except (client.ApiException, HTTPError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ClusterFailedError(f"{_OPTION}: the cluster does not answer: {reason}") from error


@dataclass(slots=True)
class _NamespaceReader:
    """Reads one namespace.

    Attributes:
        api: The API server.
        namespace: Name of the namespace.
        unseen: What the user may not read.
    """

    api: client.ApiClient
    namespace: str
    unseen: list[str] = field(default_factory=list)

    def at(self, plan: Plan) -> Namespace:
        core, storage = client.CoreV1Api(self.api), client.StorageV1Api(self.api)
        self._exists(core)
        planned = [workload(each) for each in build_objects(plan) if each["kind"] == DEPLOYMENT]
        ranges = self._list("LimitRanges", core.list_namespaced_limit_range, self.namespace)
        quotas = self._list("ResourceQuotas", core.list_namespaced_resource_quota, self.namespace)
        classes = None
        if any(each.claims for each in planned):
            classes = self._list("StorageClasses", storage.list_storage_class)
        return Namespace(
            limit_ranges=None if ranges is None else tuple(map(limit_range_from_object, ranges)),
            quotas=None if quotas is None else tuple(map(quota_from_object, quotas)),
            storage_classes=None if classes is None else tuple(map(storage_class_from_object, classes)),
            claims=self._claims(core, planned),
            present=tuple(self._present(planned)),
            unseen=tuple(dict.fromkeys(self.unseen)),
        )

    def _exists(self, core: client.CoreV1Api) -> None:
        found = self._get("the namespace", core.read_namespace, self.namespace)
        if found is None and not self.unseen:
            problem = Problem(
                _OPTION, f"the cluster has no namespace {self.namespace}; make it, or name another"
            )
            raise InvalidInputError("kvtier plan", problem)
        self.unseen.clear()  # what is in it is asked for all the same

    def _claims(self, core: client.CoreV1Api, planned: Iterable[Workload]) -> frozenset[str] | None:
        names = {name for each in planned for name in each.named_claims.values()}
        read = core.read_namespaced_persistent_volume_claim
        before = len(self.unseen)
        there = {
            name
            for name in names
            if self._get("PersistentVolumeClaims", read, name, self.namespace) is not None
        }
        return frozenset(there) if len(self.unseen) == before else None

    def _present(self, planned: Iterable[Workload]) -> Iterable[Workload]:
        read = client.AppsV1Api(self.api).read_namespaced_deployment
        for each in planned:
            live = self._get("Deployments", read, each.name, self.namespace)
            if live is not None and _is_ours(live["metadata"].get("labels") or {}):
                yield workload(live, (live.get("status") or {}).get("replicas", 0))

    def _list(self, what: str, call: Callable[..., Any], *place: str) -> list[dict[str, Any]] | None:
        found = self._get(what, call, *place)
        return None if found is None else found["items"]

    def _get(self, what: str, call: Callable[..., Any], *place: str) -> dict[str, Any] | None:
        """What the API server has, as parsed from JSON; None for what is not there or may not be seen."""
        try:
            answer = call(*place, _preload_content=False, _request_timeout=_TIMEOUT_S)
        except client.ApiException as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self.unseen.append(f"{what} were not looked at: your kubeconfig may not read them")
            elif error.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        return parse_json_object(answer.data, most_bytes=_MOST_BYTES)


def _is_ours(labels: Mapping[str, str]) -> bool:
    return labels.get(MANAGED_BY_LABEL) == MANAGED_BY and COMPONENT_LABEL in labels
