"""KVCacheTiers that may select the same pods: such pods are given the tier of none."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.spec.attach import MOST_RIVALS
from kvtier_operator.planning.units import many

_WAY_OUT: Final = "have the spec.attach.podSelector of one alone select them"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another KVCacheTier of the namespace, with a selector that pods of this one may have the labels of."""

    name: str
    labels: Mapping[str, str]  # of the pods that it selects
    pods: frozenset[str] = frozenset()  # those that both are seen to select, by name

    @property
    def status(self) -> dict[str, Any]:
        """As `status.attach.leavesOut` has it."""
        return {"name": self.name, "matchLabels": dict(self.labels)}


def may_share_pods(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether a pod may have the labels of both selectors."""
    return all(other.get(name, value) == value for name, value in one.items())


def left_without(labels: Mapping[str, str], pods: Collection[str], rivals: Sequence[Rival]) -> str:
    """Why a resource has no pods of its own left to give anything; empty where it may have some.

    Args:
        labels: Of the pods that it selects.
        pods: Those that are there, by name.
        rivals: All of them.
    """
    if len(rivals) > MOST_RIVALS:
        how_many = f"{many(len(rivals), 'KVCacheTier')} beside this one"
        return f"{how_many} may select its pods, more than {MOST_RIVALS}: {_WAY_OUT}"
    everything = [rival for rival in rivals if rival.labels.items() <= labels.items()]
    shared = frozenset[str]().union(*(rival.pods for rival in rivals))
    if everything or (pods and shared.issuperset(pods)):
        seen = everything or [rival for rival in rivals if rival.pods]
        return f"{_they_select(seen)} all of its pods too, which get the tier of none: {_WAY_OUT}"
    return ""


def shared_with(labels: Mapping[str, str], rivals: Sequence[Rival]) -> str:
    """Which of a resource's pods others select too; empty where none are, as far as known."""
    known = [rival for rival in rivals if rival.pods or labels.items() <= rival.labels.items()]
    if not known:
        return ""
    pods = sorted(frozenset[str]().union(*(rival.pods for rival in known)))
    more = f" and {many(len(pods) - 1, 'pod')} more" if len(pods) > 1 else ""
    which = f"pod {pods[0]}{more}" if pods else "some of its pods"
    return f"{_they_select(known)} {which} too, and such pods get the tier of none: {_WAY_OUT}"


def _they_select(rivals: Sequence[Rival]) -> str:
    names = sorted(rival.name for rival in rivals)
    if len(names) == 1:
        return f"KVCacheTier {names[0]} selects"
    return f"KVCacheTiers {' and '.join(names)} select"
