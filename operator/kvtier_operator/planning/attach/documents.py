"""Objects of owners with the tiers in their pods, and what is said of each kind of pod in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvtier_operator.planning.attach.command import find_obstacle, image_remark, model_remark, servers_remark
from kvtier_operator.planning.attach.container import engine_index
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.attach.owners import PodPlace, pod_at, pod_places, with_pod
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.planning.attach.resources import asks_for_memory
from kvtier_operator.planning.base.label_selector import mapping
from kvtier_operator.planning.units import size


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the pods of one place."""

    field: str  # path of the pods' spec, such as `spec.template.spec`
    attached_to: str = ""  # name of the KVCacheTier that they were given; empty where they were left alone
    remarks: tuple[str, ...] = ()  # a sentence each: why they were left alone, or what to know


@dataclass(frozen=True, slots=True)
class AttachedDocument:
    """An owner's object, and what became of its pods."""

    before: Mapping[str, Any]  # as its owner wrote it
    document: Mapping[str, Any]  # the same where nothing was changed
    outcomes: tuple[Outcome, ...]  # none where it has no pods that are known here


def attach_document(
    plans: Sequence[AttachPlan],
    document: Mapping[str, Any],
    image: str,
    delivery: Delivery = Delivery.INIT_CONTAINER,
) -> AttachedDocument:
    """An owner's object with the tiers in those of its pods that a plan selects.

    Args:
        plans: All that there are; of several that select one pod none is taken.
        document: The object, which is not changed. Without a namespace it is in any.
        image: kvtier/connector.
        delivery: How it comes into the pods.
    """
    attached, outcomes = document, []
    for place in pod_places(document):
        # as it was: leaders and workers of a service have their annotations in one place
        pod, outcome = _attach_place(plans, document, place, image, delivery)
        attached = with_pod(attached, place, pod) if pod else attached
        outcomes.append(outcome)
    return AttachedDocument(document, attached, tuple(outcomes))


def _attach_place(
    plans: Sequence[AttachPlan],
    document: Mapping[str, Any],
    place: PodPlace,
    image: str,
    delivery: Delivery,
) -> tuple[Mapping[str, Any] | None, Outcome]:
    """The pods of one place with the tiers, None where they are left alone; and what became of them."""
    outcome = Outcome(".".join(place.spec))
    namespace = mapping(document.get("metadata")).get("namespace")
    selecting = [
        plan
        for plan in plans
        if namespace in (None, plan.namespace)
        and plan.attach.pod_selector.match_labels.items() <= place.labels.items()
    ]
    if not selecting:
        return None, replace(outcome, remarks=(_not_selected(plans, place),))
    if len(selecting) > 1:
        names = " and ".join(plan.name for plan in selecting)
        why = LeftAlone(Reason.SEVERAL_TIERS, f"KVCacheTiers {names} select it: have one select it")
        return None, replace(outcome, remarks=(_left_alone(why),))
    [plan] = selecting
    if place.offloads:
        why = LeftAlone(Reason.HAS_CONNECTOR, "kvCacheOffloading is a connector of KServe's: remove it")
        return None, replace(outcome, remarks=(_left_alone(why),))
    pod = pod_at(document, place)
    container = plan.attach.container or place.preset or None
    attach = plan.attach.model_copy(update={"container": container})
    after = attach_pod(replace(plan, attach=attach), pod, image, before_queue=True, delivery=delivery)
    if isinstance(after, LeftAlone):
        return None, replace(outcome, remarks=(_left_alone(after),))
    engine = pod["spec"]["containers"][engine_index(pod["spec"], container)]
    obstacle = find_obstacle(engine)
    if obstacle is not None:
        return None, replace(outcome, remarks=(_left_alone(obstacle),))
    if place.preset and delivery is Delivery.INIT_CONTAINER:
        _take_no_rights(after["spec"])
    remarks = (
        _memory_remark(plan, engine, place),
        image_remark(engine),
        model_remark(engine, plan.model, place.models),
        servers_remark(engine),
        _variables_remark(engine),
    )
    return after, Outcome(outcome.field, plan.name, tuple(filter(None, remarks)))


def _not_selected(plans: Sequence[AttachPlan], place: PodPlace) -> str:
    """Why no plan takes these pods; one of another namespace is easily overlooked."""
    for plan in plans:
        if plan.attach.pod_selector.match_labels.items() <= place.labels.items():
            return f"KVCacheTier {plan.name} selects these pods, but is in namespace {plan.namespace}"
    labels = ", ".join(f"{name}={value}" for name, value in sorted(place.labels.items()))
    return f"no KVCacheTier selects these pods ({labels or 'no labels'})"


def _take_no_rights(spec: Mapping[str, Any]) -> None:
    """Has the init container say what namespaces may ask for: a preset says it of its own container alone.

    It is the image's user then, unless the pod says that all are root.
    """
    payload = spec["initContainers"][0]
    is_root = mapping(spec.get("securityContext")).get("runAsUser") == 0
    payload["securityContext"] = {
        "seccompProfile": {"type": "RuntimeDefault"},
        **({} if is_root else {"runAsNonRoot": True}),
        **payload["securityContext"],
    }


def _left_alone(why: LeftAlone) -> str:
    return f"left alone: {why.message} ({why.reason})"


def _variables_remark(engine: Mapping[str, Any]) -> str:
    if not engine.get("envFrom"):
        return ""
    return "variables of envFrom are not seen here: a VLLM_PLUGINS among them has to name kvtier"


def _memory_remark(plan: AttachPlan, engine: Mapping[str, Any], place: PodPlace) -> str:
    if asks_for_memory(mapping(engine.get("resources"))):
        parts = ", ".join(f"{line.what} {size(line.bytes)}" for line in plan.memory)
        return f"{size(plan.memory_bytes)} of memory more: {parts}"
    whose = " here; if its preset does, set memory here too" if place.preset else ""
    beside = f"{size(plan.memory_bytes)} of the tiers are taken and not asked for"
    return f"container {engine.get('name')} asks for no memory{whose}: {beside}"
