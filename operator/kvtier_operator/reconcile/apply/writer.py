"""The one place that writes to the API server, and counts it; and the Events that are written."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_common.kubernetes.answers import ConflictError, InvalidObjectError, ServerError, parse_document
from kvtier_common.kubernetes.client import APPLY, JSON_PATCH, MERGE_PATCH, Api, Request
from kvtier_operator.api.resource import PROGRESS
from kvtier_operator.reconcile.api_server import BY_NAME, EVENT, KVCACHETIER, POD, SECRET, Ref
from kvtier_operator.reconcile.facts.cached_plan import FIELD_MANAGER, DesiredObject
from kvtier_operator.reconcile.observability import API_WRITES

AUTOSCALING_MANAGER: Final = "kvtier-autoscaling"
"""Keeps a Deployment's number of pods until an autoscaler changes it."""
_NOT_TYPED: Final = "failed to create typed patch object"
"""What a server says, as its own failure, of a field that the kind does not have, or of one of another type
(k8s.io/apimachinery, pkg/util/managedfields/internal/structuredmerge.go)."""
_COMING_UP: Final = frozenset({"Progressing", "NotCreated", "NotPlanned", "NodesNotSeen"})
"""Reasons that get an Event only where the condition was True before."""
_MAX_MESSAGE: Final = 1024
"""The most that an Event takes (k8s.io/kubernetes, pkg/apis/core/validation/events.go)."""


class Writer:
    """Every write that the operator does."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def apply(self, desired: DesiredObject) -> dict[str, Any]:
        """Applies an object, which removes fields that only an earlier apply had; returns it as it is now."""
        API_WRITES.labels("apply", desired.ref.kind).inc()
        return await self._send(_apply(desired, {"fieldValidation": "Ignore"}))

    async def try_to_apply(self, desired: DesiredObject) -> None:
        """Has the server say whether it would take an object, and changes nothing.

        Where it would not, also for a field that it does not know: an InvalidObjectError.
        """
        try:
            await self._api.request(_apply(desired, {"fieldValidation": "Strict", "dryRun": "All"}))
        except ServerError as error:
            if _NOT_TYPED in str(error):
                raise InvalidObjectError(str(error)) from error
            raise

    async def hand_over_replicas(self, desired: DesiredObject, uid: str, replicas: int) -> None:
        """Has a Deployment's number of pods belong to a second manager before kvtier no longer applies it.

        A field that no manager has any more is gone, and the number would be Kubernetes' default, one pod.
        The autoscaler, which writes without applying, takes it from that manager with its first change.
        """
        API_WRITES.labels("apply", desired.ref.kind).inc()
        body = desired.body or {}
        document = {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "metadata": {"name": desired.ref.name, "namespace": desired.ref.namespace, "uid": uid},
            "spec": {"replicas": replicas},
        }
        query = {"fieldManager": AUTOSCALING_MANAGER, "force": "true"}
        path = desired.kind.path(desired.ref.namespace, desired.ref.name)
        await self._api.request(Request("PATCH", path, query, document, APPLY))

    async def annotate_pod(self, namespace: str, name: str, uid: str, annotations: Mapping[str, str]) -> None:
        """Sets annotations of the pod with this uid."""
        API_WRITES.labels("patch", POD.kind).inc()
        patch = {"metadata": {"uid": uid, "annotations": {**annotations}}}
        query = {"fieldManager": FIELD_MANAGER}
        await self._api.request(Request("PATCH", POD.path(namespace, name), query, patch, MERGE_PATCH))

    async def merge(self, ref: Ref, patch: dict[str, Any]) -> dict[str, Any]:
        """Changes single fields of an object, None removes one; returns it as it is now."""
        API_WRITES.labels("patch", ref.kind).inc()
        path = BY_NAME[ref.kind].path(ref.namespace, ref.name)
        return await self._send(Request("PATCH", path, {"fieldManager": FIELD_MANAGER}, patch, MERGE_PATCH))

    async def delete(self, ref: Ref, uid: str) -> None:
        """Deletes the object with this uid; its dependents are deleted in the background."""
        API_WRITES.labels("delete", ref.kind).inc()
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        path = BY_NAME[ref.kind].path(ref.namespace, ref.name)
        await self._api.request(Request("DELETE", path, body=body))

    async def status(self, namespace: str, name: str, uid: str, status: dict[str, Any]) -> dict[str, Any]:
        """Replaces the whole status of the resource with this uid; returns the resource as it is now."""
        API_WRITES.labels("status", KVCACHETIER.kind).inc()
        body = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        path = f"{KVCACHETIER.path(namespace, name)}/status"
        query = {"fieldManager": FIELD_MANAGER}
        return await self._send(Request("PATCH", path, query, body, JSON_PATCH))

    async def event(self, namespace: str, event: dict[str, Any]) -> None:
        """Creates an Event."""
        API_WRITES.labels("create", EVENT.kind).inc()
        await self._api.request(Request("POST", EVENT.path(namespace), body=event))

    async def create_secret(self, secret: dict[str, Any]) -> None:
        """Makes a Secret; one of that name that is there already stays as it is, whoever made it."""
        API_WRITES.labels("create", SECRET.kind).inc()
        path = SECRET.path(secret["metadata"]["namespace"])
        query = {"fieldManager": FIELD_MANAGER}
        with contextlib.suppress(ConflictError):
            await self._api.request(Request("POST", path, query, secret))

    async def _send(self, request: Request) -> dict[str, Any]:
        return parse_document(await self._api.request(request))


def _apply(desired: DesiredObject, query: dict[str, str]) -> Request:
    path = desired.kind.path(desired.ref.namespace, desired.ref.name)
    query = {"fieldManager": FIELD_MANAGER, "force": "true", **query}
    return Request("PATCH", path, query, desired.body, APPLY)


def transitions(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The conditions that deserve an Event: some of those whose status or reason changed."""
    known = {condition["type"]: condition for condition in before}
    return [condition for condition in after if _is_news(known.get(condition["type"]), condition)]


def _is_news(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    if before and (before["status"], before["reason"]) == (now["status"], now["reason"]):
        return False
    if now["type"] in PROGRESS:
        return False  # these and a Ready that is False say again what another condition says
    if now["type"] == "Ready":
        return bool(now["status"] == "True")
    if now["status"] == "True":
        return bool(before and before["status"] == "False" and before["reason"] not in _COMING_UP)
    return now["reason"] not in _COMING_UP or bool(before and before["status"] == "True")


def event(condition: Mapping[str, Any], metadata: Mapping[str, Any], now: str) -> dict[str, Any]:
    """A v1 Event about one condition of a resource."""
    good = condition["status"] == "True"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": KVCACHETIER.api_version,
            "kind": KVCACHETIER.kind,
            **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
        },
        "type": "Normal" if good else "Warning",
        "reason": condition["type"] if good else f"{condition['type']}{condition['reason']}",
        "message": f"{condition['type']}={condition['status']}: {condition['message']}"[:_MAX_MESSAGE],
        "source": {"component": "kvtier-operator"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
