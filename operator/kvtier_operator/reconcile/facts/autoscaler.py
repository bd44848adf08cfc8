"""Whether an autoscaler scales, as it says itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.one_line import one_line

_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "HorizontalPodAutoscaler": ("AbleToScale", "ScalingActive"),
    "ScaledObject": ("Ready",),
}
"""Conditions that have to be True (k8s.io/api, autoscaling/v2; KEDA 2, keda.sh/v1alpha1)."""
_PAUSED: Final = "Paused"
"""Condition of a ScaledObject that an annotation stops (`autoscaling.keda.sh/paused`); it is Ready then."""
_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class AutoscalerFacts:
    """What an autoscaler's status says.

    Attributes:
        scales: Whether it knows its metric and may scale; None while it has not said so.
        reason: Its own reason where it does not.
        message: Its own words where it does not.
        paused: Whether somebody told it to rest.
    """

    scales: bool | None = None
    reason: str = ""
    message: str = ""
    paused: bool = False


def autoscaler_facts(kind: str, document: Mapping[str, Any]) -> AutoscalerFacts | None:
    """Reads a HorizontalPodAutoscaler or a ScaledObject; None for another kind."""
    telling = _TELLING.get(kind)
    if telling is None:
        return None
    said = (document.get("status") or {}).get("conditions") or ()
    conditions = {each.get("type"): each for each in said}
    if kind == "ScaledObject" and conditions.get(_PAUSED, {}).get("status") == "True":
        return AutoscalerFacts(scales=False, paused=True)
    found = [conditions[type_] for type_ in telling if type_ in conditions]
    failing = next((each for each in found if each.get("status") == "False"), None)
    if failing is not None:
        message = one_line(failing.get("message") or "", _MOST_CHARACTERS)
        return AutoscalerFacts(scales=False, reason=failing.get("reason") or "", message=message)
    well = len(found) == len(telling) and all(each.get("status") == "True" for each in found)
    return AutoscalerFacts(scales=True if well else None)
