"""What Gateway controllers report of an HTTPRoute or an InferencePool in `status.parents`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kvtier_operator.planning.router.route_order import Listeners, listeners_of

_ACCEPTED: Final = "Accepted"
_OF_ROUTES: Final[Mapping[str, str]] = {
    _ACCEPTED: "True",
    "ResolvedRefs": "True",
    "PartiallyInvalid": "False",
    "Programmed": "True",
    "Reconciled": "True",
}
"""The status that each condition has to have where it is reported. The first three are Gateway API's (v1,
apis/v1/shared_types.go), `Programmed` is Kong's, `Reconciled` GKE's (inference extension, issue 806). Of
others nobody knows which status is the good one."""
_OF_POOLS: Final[Mapping[str, str]] = {_ACCEPTED: "True", "ResolvedRefs": "True"}
"""inference extension v1, api/v1/inferencepool_types.go. `Exported` is False where nobody asked for it."""
_MOST_CHARACTERS: Final = 1024


class ParentAnswer(IntEnum):
    """Whether a Gateway accepts an object, from the best answer to the worst."""

    ACCEPTED = 0
    UNANSWERED = 1
    """Its controller has not reported anything."""
    PENDING = 2
    """Its controller has reported on an earlier generation only."""
    REJECTED = 3


@dataclass(frozen=True, slots=True)
class ParentFacts:
    """What one parent reports of an object.

    Attributes:
        listeners: The parent.
        answer: Whether it accepts the object.
        reason: The first reason that it gives where it does not accept it.
        message: Its own words where it does not accept it.
        attached: False where it does not attach the object at all.
    """

    listeners: Listeners
    answer: ParentAnswer = ParentAnswer.UNANSWERED
    reason: str = ""
    message: str = ""
    attached: bool = True


def route_parents(document: Mapping[str, Any]) -> tuple[ParentFacts, ...]:
    """One for each Gateway that an HTTPRoute names; of several controllers' answers the worst counts."""
    namespace = document["metadata"].get("namespace", "")
    reports = _reports(document, _OF_ROUTES)
    named = (listeners_of(each, namespace) for each in document["spec"].get("parentRefs") or ())
    return tuple(
        max(
            (each for each in reports if each.listeners == listeners),
            key=lambda each: each.answer,
            default=ParentFacts(listeners),
        )
        for listeners in named
        if listeners is not None
    )


def pool_parents(document: Mapping[str, Any]) -> tuple[ParentFacts, ...]:
    """One for each Gateway that reports on an InferencePool: not all do (kgateway, issue 13456)."""
    return _reports(document, _OF_POOLS)


def _reports(document: Mapping[str, Any], must: Mapping[str, str]) -> tuple[ParentFacts, ...]:
    namespace = document["metadata"].get("namespace", "")
    generation = document["metadata"].get("generation", 1)
    parents = (document.get("status") or {}).get("parents") or ()
    found = ((listeners_of(each.get("parentRef") or {}, namespace), each) for each in parents)
    return tuple(
        _judged(listeners, entry, must, generation) for listeners, entry in found if listeners is not None
    )


def _judged(
    listeners: Listeners, entry: Mapping[str, Any], must: Mapping[str, str], generation: int
) -> ParentFacts:
    conditions = {each["type"]: each for each in entry.get("conditions") or () if each["type"] in must}
    current = {name: each for name, each in conditions.items() if not _is_old(each, generation)}
    wrong = [each for name, each in current.items() if each["status"] not in (must[name], "Unknown")]
    if wrong:
        attached = current.get(_ACCEPTED, {}).get("status") != "False"
        return _report(listeners, ParentAnswer.REJECTED, entry, wrong, attached=attached)
    undecided = [each for each in current.values() if each["status"] == "Unknown"]
    if undecided or len(current) < len(conditions) or _ACCEPTED not in current:
        return _report(listeners, ParentAnswer.PENDING, entry, undecided, attached=True)
    return ParentFacts(listeners, ParentAnswer.ACCEPTED)


def _is_old(condition: Mapping[str, Any], generation: int) -> bool:
    """One without `observedGeneration`, which may be left out, is taken for current."""
    return bool(condition.get("observedGeneration", generation) < generation)


def _report(
    listeners: Listeners,
    answer: ParentAnswer,
    entry: Mapping[str, Any],
    conditions: list[Mapping[str, Any]],
    *,
    attached: bool,
) -> ParentFacts:
    lines = "; ".join(
        f"{each['type']}={each['status']}, {each['reason']}: {each['message']}" for each in conditions
    )
    text = " ".join(lines.split())[:_MOST_CHARACTERS]
    controller = entry.get("controllerName", "")
    return ParentFacts(
        listeners=listeners,
        answer=answer,
        reason=conditions[0]["reason"] if conditions else "",
        message=f"{text} ({controller})" if text and controller else text,
        attached=attached,
    )
