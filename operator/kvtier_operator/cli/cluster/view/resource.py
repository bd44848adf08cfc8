"""One resource with all that is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvtier_common.metrics.text import Families
from kvtier_operator.cli.cluster.seen import Seen
from kvtier_operator.cli.cluster.view.engines import EngineFigures, engine_figures
from kvtier_operator.cli.cluster.view.picker import PickerFigures, picker_figures
from kvtier_operator.cli.cluster.view.pods import PodRow, component_of, pod_rows
from kvtier_operator.cli.cluster.view.tiers import TierRow, tier_rows
from kvtier_operator.planning.base.names import Component


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition as the operator wrote it; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A resource for somebody who asks how it is.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        model: What its engines serve.
        backend: What moves blocks.
        flavor: Which picker.
        replicas: Engines that are wanted; with an autoscaler, those that it has chosen.
        ready_replicas: Engines that are ready.
        is_acted_on: Whether the operator's status is about the latest spec.
        conditions: In the operator's order.
        pods: Its engines, pickers and gateways of its own.
        engines: What engines count.
        tiers: A row for each tier.
        picker: What pickers say.
        entries: LRU capacities of the picker's prefix scorers, such as `cpuPrefix`.
        tokens_per_entry: Tokens that one of them stands for; None where the operator did not say.
        url: Where clients ask a gateway of its own; empty without one.
        unread: What could not be read, a line each.
    """

    namespace: str
    name: str
    model: str
    backend: str
    flavor: str
    replicas: int
    ready_replicas: int
    is_acted_on: bool
    conditions: tuple[ConditionRow, ...]
    pods: tuple[PodRow, ...]
    engines: EngineFigures
    tiers: tuple[TierRow, ...]
    picker: PickerFigures
    entries: Mapping[str, int]
    tokens_per_entry: int | None
    url: str
    unread: tuple[str, ...]


def resource_view(seen: Seen, now: datetime) -> ResourceView:
    """What was read of a resource, worked out.

    Args:
        seen: What was read.
        now: The time, with its zone.
    """
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
        replicas=_wanted(spec, status),
        ready_replicas=status.get("readyReplicas", 0),
        is_acted_on=status.get("observedGeneration") == metadata.get("generation"),
        conditions=tuple(
            ConditionRow(each["type"], each["status"], each["reason"], each["message"])
            for each in status.get("conditions", ())
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


def _wanted(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    scaling = spec.get("autoscaling")
    wanted: int = (
        max(scaling.get("minReplicas", 1), status.get("replicas", 0)) if scaling else spec.get("replicas", 1)
    )
    return wanted
