"""Kubernetes Events: one for each condition that changed, none for what stays."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_operator.reconcile.api_server.kinds import KVCACHETIER

_COMING_UP: Final = frozenset({"Progressing", "NotCreated", "NotPlanned", "NodesNotSeen"})
"""Reasons that get an Event only where the condition was True before."""
_MAX_MESSAGE: Final = 1024
"""The most that an Event takes (k8s.io/kubernetes, pkg/apis/core/validation/events.go)."""


def transitions(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The conditions that deserve an Event: some of those whose status or reason changed."""
    known = {each["type"]: each for each in before}
    return [each for each in after if _is_news(known.get(each["type"]), each)]


def _is_news(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    if before and (before["status"], before["reason"]) == (now["status"], now["reason"]):
        return False
    if now["type"] == "Ready":
        return bool(now["status"] == "True")  # its being False says again what another condition says
    if now["status"] == "True":
        return bool(before and before["status"] == "False" and before["reason"] not in _COMING_UP)
    return now["reason"] not in _COMING_UP or bool(before and before["status"] == "True")


def event(condition: Mapping[str, Any], metadata: Mapping[str, Any], now: str) -> dict[str, Any]:
    """A v1 Event about one condition of a resource.

    Args:
        condition: The condition as it now stands in the status.
        metadata: The resource's metadata.
        now: The time, RFC 3339 in UTC.
    """
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
