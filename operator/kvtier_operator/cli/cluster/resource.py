"""What was read of a resource, as the API server and its pods said it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kvtier_common.kubernetes.answers import Document
from kvtier_common.metrics.text import Families
from kvtier_operator.cli.cluster.figures import (
    EngineFigures,
    PickerFigures,
    TierRow,
    engine_figures,
    picker_figures,
    tier_rows,
)
from kvtier_operator.planning.base.names import COMPONENT_LABEL, Component
from kvtier_operator.reconcile.cache.pods import not_ready_pod


@dataclass(frozen=True, slots=True)
class Seen:
    """One resource with its pods."""

    resource: Document  # the KVCacheTier
    pods: tuple[Document, ...] = ()  # its engines' and pickers' pods; none where they may not be listed
    # what was found in the /metrics of each pod that was asked and answered, by its name
    metrics: Mapping[str, Families] = field(default_factory=dict)
    unread: tuple[str, ...] = ()  # what could not be read, and what would help, a line each


READY: Final = "ready"
STARTING: Final = "starting"
ENDING: Final = "ending"


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod."""

    name: str
    component: str  # what it is
    state: str  # `ready`, `starting`, `ending`, or the reason why it does not start
    message: str  # what its status says about that; empty where it is ready
    restarts: int  # of its containers, together
    age_s: float  # since it was made
    node: str  # its node; empty before it has one


def pod_rows(pods: Iterable[Mapping[str, Any]], now: datetime) -> tuple[PodRow, ...]:
    """Engines, then the gateway's pods, then pickers, by name."""
    rows = (_row(pod, now) for pod in pods)
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
        restarts=sum(container.get("restartCount", 0) for container in containers),
        age_s=(now - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds(),
        node=(pod.get("spec") or {}).get("nodeName", ""),
    )


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition as the operator wrote it; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A resource for somebody who asks how it is."""

    namespace: str
    name: str
    model: str  # what its engines serve
    backend: str  # what moves blocks
    flavor: str  # which picker
    replicas: int  # engines that are wanted; with an autoscaler, those that it has chosen
    ready_replicas: int  # engines that are ready
    is_acted_on: bool  # whether the operator's status is about the latest spec
    conditions: tuple[ConditionRow, ...]  # in the operator's order
    pods: tuple[PodRow, ...]  # its engines, pickers and gateways of its own
    engines: EngineFigures  # what engines count
    tiers: tuple[TierRow, ...]  # a row for each tier
    picker: PickerFigures  # what pickers say
    entries: Mapping[str, int]  # LRU capacities of the picker's prefix scorers, such as `cpuPrefix`
    tokens_per_entry: int | None  # tokens that one of them stands for; None where the operator did not say
    url: str  # where clients ask a gateway of its own; empty without one
    unread: tuple[str, ...]  # what could not be read, a line each


def resource_view(seen: Seen, now: datetime) -> ResourceView:
    """What was read of a resource, worked out."""
    metadata, spec = seen.resource["metadata"], seen.resource["spec"]
    status = seen.resource.get("status") or {}
    router = status.get("router") or {}
    components = {each["metadata"]["name"]: component_of(each) for each in seen.pods}

    def metrics_of(component: Component) -> list[Families]:
        return [found for pod, found in seen.metrics.items() if components.get(pod) == component]

    engines = engine_figures(metrics_of(Component.ENGINE))
    return ResourceView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        model=spec["model"]["name"],
        backend=spec.get("backend", ""),
        flavor=(spec.get("router") or {}).get("flavor", ""),
        replicas=_wanted_replicas(spec, status),
        ready_replicas=status.get("readyReplicas", 0),
        is_acted_on=status.get("observedGeneration") == metadata.get("generation"),
        conditions=tuple(
            ConditionRow(condition["type"], condition["status"], condition["reason"], condition["message"])
            for condition in status.get("conditions", ())
        ),
        pods=pod_rows(seen.pods, now),
        engines=engines,
        tiers=tier_rows(status.get("tiers") or {}, engines),
        picker=picker_figures(metrics_of(Component.PICKER)),
        entries=router.get("entries") or {},
        tokens_per_entry=router.get("tokensPerEntry"),
        url=router.get("url") or "",
        unread=seen.unread,
    )


def _wanted_replicas(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    scaling = spec.get("autoscaling")
    wanted: int = (
        max(scaling.get("minReplicas", 1), status.get("replicas", 0)) if scaling else spec.get("replicas", 1)
    )
    return wanted
