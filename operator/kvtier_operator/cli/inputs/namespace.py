"""Reads the storage that a namespace can have, as far as the rights of the user go."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from kubernetes import client
from kubernetes.config import new_client_from_config
from urllib3.exceptions import HTTPError

from kvtier_common.errors import PermanentError, RetryableError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_operator.cli.inputs.options import ClusterChoice
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.cluster.storage import (
    Namespace,
    PodVolumes,
    pod_volumes,
    storage_class_from_object,
    storage_verdicts,
)
from kvtier_operator.planning.plan import Plan

_OPTION: Final = "--against-namespace"
_BY_DEFAULT: Final = ClusterChoice()
_TIMEOUT_S: Final = 10
_MOST_BYTES: Final = 16 << 20
"""Of an answer."""


class ClusterError(PermanentError):
    """There is no cluster to look at."""


class ClusterFailedError(RetryableError):
    """The cluster does not answer, or not with what was asked for."""


def with_namespace_checks(
    name: str, plans: Iterable[Plan], cluster: ClusterChoice = _BY_DEFAULT
) -> list[Plan]:
    """The Plans with what their pods would wait for in a namespace among their checks."""
    return [
        replace(plan, checks=(*plan.checks, *storage_verdicts(plan, read_namespace(name, plan, cluster))))
        for plan in plans
    ]


def read_namespace(name: str, plan: Plan, cluster: ClusterChoice = _BY_DEFAULT) -> Namespace:
    """What a Plan's volumes can have in a namespace of the kubeconfig's cluster."""
    try:
        api = new_client_from_config(cluster.kubeconfig or os.environ.get("KUBECONFIG"), cluster.context)
    except Exception as error:  # what it raises depends on what stands in the file
        why = str(error).rstrip(".")
        remedy = "" if cluster.kubeconfig else "; set KUBECONFIG"
        raise ClusterError(f"{_OPTION}: no cluster to look at: {why}{remedy}") from error
    with api:
        try:
            return _NamespaceReader(api, name).at(plan)
        except (client.ApiException, HTTPError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ClusterFailedError(f"{_OPTION}: the cluster does not answer: {reason}") from error


@dataclass(slots=True)
class _NamespaceReader:
    """Reads one namespace."""

    api: client.ApiClient  # the API server
    namespace: str  # name of the namespace
    unseen: list[str] = field(default_factory=list)  # what the user may not read

    def at(self, plan: Plan) -> Namespace:
        core = client.CoreV1Api(self.api)
        self._exists(core)
        volumes = pod_volumes(plan)
        classes = None
        if any(pod.classes for pod in volumes):
            classes = self._get("StorageClasses", client.StorageV1Api(self.api).list_storage_class)
        return Namespace(
            storage_classes=None
            if classes is None
            else tuple(map(storage_class_from_object, classes["items"])),
            claims=self._claims(core, volumes),
            unseen=tuple(dict.fromkeys(self.unseen)),
        )

    def _exists(self, core: client.CoreV1Api) -> None:
        answer = self._get("the namespace", core.read_namespace, self.namespace)
        if answer is None and not self.unseen:
            problem = Problem(
                _OPTION, f"the cluster has no namespace {self.namespace}; make it, or name another"
            )
            raise InvalidInputError("kvtier plan", problem)
        self.unseen.clear()  # what is in it is asked for all the same

    def _claims(self, core: client.CoreV1Api, volumes: Iterable[PodVolumes]) -> frozenset[str] | None:
        names = {name for pod in volumes for name in pod.claims.values()}
        read = core.read_namespaced_persistent_volume_claim
        before = len(self.unseen)
        there = {
            name
            for name in names
            if self._get("PersistentVolumeClaims", read, name, self.namespace) is not None
        }
        return frozenset(there) if len(self.unseen) == before else None

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
