"""What a Plan asks of a namespace's quotas, with what others planned before it ask."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from kvtier_operator.planning.base.devices import is_device
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.cluster.namespace.fields import shares
from kvtier_operator.planning.cluster.namespace.names import plain
from kvtier_operator.planning.cluster.namespace.workload import Workload
from kvtier_operator.planning.cluster.nodes.shortage import amount
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import many

_WITH_EACH_POD: Final = ("pods", "count/pods", "persistentvolumeclaims", "count/persistentvolumeclaims")
_REPLICAS: Final = {
    Component.PICKER: "spec.router.replicas",
    Component.GATEWAY: "spec.router.gateway.standalone.replicas",
}


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of a quota.

    Attributes:
        plan: The Plan.
        workloads: Pods as admitted, each with what one of them counts for, its volumes included.
        objects: What everything that is no pod counts for.
        there: What of all this is there already, and so among what is used.
        before: Of the Plans that are counted before this one.
    """

    plan: Plan
    workloads: tuple[tuple[Workload, Counter[str]], ...]
    objects: Counter[str]
    there: Counter[str]
    before: tuple[Self, ...] = ()

    def of(self, resource: str) -> int:
        """All of a resource that this Plan takes."""
        return self.objects[resource] + sum(each.pods * usage[resource] for each, usage in self.workloads)

    def surge(self, resource: str) -> int:
        """What a rollout takes beside that, until it is over."""
        return sum(each.surge * usage[resource] for each, usage in self.workloads)

    def all_of(self, resource: str) -> int:
        """What this Plan takes and those before it."""
        return self.of(resource) + sum(each.of(resource) for each in self.before)

    def present(self, resource: str) -> int:
        """What of that is there already."""
        return self.there[resource] + sum(each.there[resource] for each in self.before)

    @property
    def company(self) -> str:
        """Those before it in words; empty where there are none."""
        count = len(self.before)
        others = "resource" if count == 1 else f"{count} resources"
        return f"with the {others} before it" if count else ""

    def field(self, resource: str, missing: int) -> str:
        """Path of a field that saves what is missing, or else most of it; empty where none does."""
        ways = [
            way
            for each, usage in self.workloads
            if each.pods and usage[resource]
            for way in self._ways(each, resource, usage[resource])
        ]
        enough = [where for where, saved in ways if saved >= missing]
        some = [(saved, where) for where, saved in ways if saved and where not in self._replica_fields]
        return enough[0] if enough else max(some, default=(0, ""))[1]

    def needed(self, resource: str) -> str:
        """What is wanted in words, such as `16 needed (2 engine pods of 8)`."""
        counts = [(each.pods, each, usage[resource]) for each, usage in self.workloads]
        parts = self._words(resource, counts)
        beside = f" ({parts})" if parts else ""
        return f"{amount(plain(resource), self.of(resource))} needed{beside}{self._with(resource, 0)}"

    def needed_for_rollout(self, resource: str) -> str:
        """The same while pods are replaced, such as `1 needed with 2 picker pods of 500m`."""
        surge, replaced = self.surge(resource), self._replaced(resource)
        counts = [
            (each.pods + each.surge, each, usage[resource]) for each, usage in self.workloads if each.surge
        ]
        return (
            f"{amount(plain(resource), self.of(resource) + surge)} needed with "
            f"{self._words(resource, counts)} while {replaced} replaced{self._with(resource, surge)}"
        )

    def _words(self, resource: str, counts: Iterable[tuple[int, Workload, int]]) -> str:
        return ", ".join(
            f"{many(number, f'{each.component} pod')} of {amount(plain(resource), one_takes)}"
            for number, each, one_takes in counts
            if number and one_takes
        )

    def _replaced(self, resource: str) -> str:
        """Whose pods a rollout doubles, such as `the picker is`."""
        who = [f"the {each.component}" for each, usage in self.workloads if each.surge and usage[resource]]
        return f"{' and '.join(who)} {'is' if len(who) == 1 else 'are'}"

    def _with(self, resource: str, surge: int) -> str:
        if not self.before:
            return ""
        return f", {amount(plain(resource), self.all_of(resource) + surge)} {self.company}"

    @property
    def _replica_fields(self) -> tuple[str, ...]:
        return (self.plan.resource.spec.most_replicas_field, *_REPLICAS.values())

    def _replica_field(self, workload: Workload) -> str:
        """Path of the field that says how many of these pods there may be."""
        return _REPLICAS.get(workload.component, self.plan.resource.spec.most_replicas_field)

    def _ways(self, workload: Workload, resource: str, one_takes: int) -> Iterator[tuple[str, int]]:
        """Fields, each with how much less of a resource it can make of these pods; one of them stays."""
        name, fewer = plain(resource), (workload.pods - 1) * one_takes
        if name in _WITH_EACH_POD:
            yield self._replica_field(workload), fewer
        elif is_device(name):
            yield self._replica_field(workload), fewer
            yield from shares(self.plan, workload, resource, workload.pods * (one_takes - 1)).items()
        else:
            for where, share in shares(self.plan, workload, resource, one_takes).items():
                yield where, workload.pods * share
