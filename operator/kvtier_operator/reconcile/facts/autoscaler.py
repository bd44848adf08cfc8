"""Whether an autoscaler scales, as it says itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "HorizontalPodAutoscaler": ("AbleToScale", "ScalingActive"),
    "ScaledObject": ("Ready",),
}
"""Conditions that have to be True (k8s.io/api, autoscaling/v2; KEDA 2, keda.sh/v1alpha1)."""
_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class AutoscalerFacts:
    """What an autoscaler's status says.

    Attributes:
        scales: Whether it knows its metric and may scale; None while it has not said so.
        reason: Its own reason where it does not.
        message: Its own words where it does not.
    """

    scales: bool | None = None
    reason: str = ""
    message: str = ""


def autoscaler_facts(kind: str, document: Mapping[str, Any]) -> AutoscalerFacts | None:
    """Reads a HorizontalPodAutoscaler or a ScaledObject; None for another kind."""
    telling = _TELLING.get(kind)
    if telling is None:
        return None
    conditions = {each["type"]: each for each in (document.get("status") or {}).get("conditions") or ()}
    found = [conditions[type_] for type_ in telling if type_ in conditions]
    failing = next((each for each in found if each["status"] == "False"), None)
    if failing is not None:
        message = " ".join(failing.get("message", "").split())
        return AutoscalerFacts(
            scales=False, reason=failing.get("reason", ""), message=message[:_MOST_CHARACTERS]
        )
    said = len(found) == len(telling) and all(each["status"] == "True" for each in found)
    return AutoscalerFacts(scales=True if said else None)
