"""A row for each pod of a resource."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kvtier_operator.planning.objects.names import COMPONENT_LABEL, Component
from kvtier_operator.reconcile.cache.pods import not_ready_pod

READY: Final = "ready"
STARTING: Final = "starting"
ENDING: Final = "ending"


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod.

    Attributes:
        name: The pod.
        component: What it is.
        state: `ready`, `starting`, `ending`, or the reason why it does not start.
        message: What its status says about that; empty where it is ready.
        restarts: Of its containers, together.
        age_s: Since it was made.
        node: Its node; empty before it has one.
    """

    name: str
    component: str
    state: str
    message: str
    restarts: int
    age_s: float
    node: str


def pod_rows(pods: Iterable[Mapping[str, Any]], now: datetime) -> tuple[PodRow, ...]:
    """Engines, then the gateway's pods, then pickers, by name.

    Args:
        pods: v1 Pods of one resource.
        now: The time, with its zone.
    """
    rows = (_row(each, now) for each in pods)
    wanted = (Component.ENGINE, Component.GATEWAY, Component.PICKER)
    return tuple(sorted((row for row in rows if row.component in wanted), key=_place))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod answers: it is ready and not on its way out."""
    return not_ready_pod(pod) is None


def component_of(pod: Mapping[str, Any]) -> str:
    """What a pod is, such as an engine; empty for one that is none of kvtier's."""
    return str((pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL, ""))


def _place(row: PodRow) -> tuple[str, str]:
    return row.component, row.name


def _row(pod: Mapping[str, Any], now: datetime) -> PodRow:
    metadata, status, trouble = pod["metadata"], pod.get("status") or {}, not_ready_pod(pod)
    containers = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    state = READY
    if trouble is not None:
        state = ENDING if trouble.terminating else trouble.reason or STARTING
    return PodRow(
        name=metadata["name"],
        component=component_of(pod),
        state=state,
        message=trouble.message if trouble else "",
        restarts=sum(each.get("restartCount", 0) for each in containers),
        age_s=(now - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds(),
        node=(pod.get("spec") or {}).get("nodeName", ""),
    )
