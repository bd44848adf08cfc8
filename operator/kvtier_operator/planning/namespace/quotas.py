"""What the ResourceQuotas of a namespace leave too little of for a Plan."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.checks.check import Verdicts
from kvtier_operator.planning.namespace.names import field, plain
from kvtier_operator.planning.namespace.quota import Quota, unset
from kvtier_operator.planning.namespace.workload import Workload
from kvtier_operator.planning.nodes.shortage import amount
from kvtier_operator.planning.objects.names import Component
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import many

_VERDICTS: Final = Verdicts("quota", "metadata.namespace")
NO_QUOTA: Final = _VERDICTS.passed("no ResourceQuota")


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of a quota.

    Attributes:
        workloads: Pods as admitted, each with what one of them counts for, its volumes included.
        objects: What everything that is no pod counts for.
        present: What of all this is there already, and so among what is used.
    """

    workloads: tuple[tuple[Workload, Counter[str]], ...]
    objects: Counter[str]
    present: Counter[str]

    def of(self, resource: str) -> int:
        """All of a resource."""
        return self.objects[resource] + sum(each.pods * usage[resource] for each, usage in self.workloads)

    def field(self, resource: str) -> str:
        """Path of the field that makes it less, of the engines where both ask; empty where none does."""
        asking = [each.component for each, usage in self.workloads if each.pods and usage[resource]]
        return field(asking[0], resource) if asking else ""

    def parts(self, resource: str) -> str:
        """The same in words, such as `2 engine pods of 8`."""
        return ", ".join(
            f"{many(each.pods, f'{each.component} pod')} of {amount(plain(resource), usage[resource])}"
            for each, usage in self.workloads
            if usage[resource] and each.pods
        )


def quotas(demand: Demand, found: Sequence[Quota]) -> tuple[CheckResult, ...]:
    """Refusals; then the quotas of which it cannot be told whether they count these pods."""
    ours = [each for each in found if each.counts_ours]
    refusals = [result for each in ours for result in (*_exceeded(each, demand), *_unset(each, demand))]
    remarks = [_left_out(each) for each in found if each.open_scopes]
    if refusals or remarks:
        return (*refusals, *remarks)
    return (_VERDICTS.passed(f"{many(len(ours), 'ResourceQuota')} to count in, with room for it"),)


def _exceeded(quota: Quota, demand: Demand) -> Iterator[CheckResult]:
    for resource, hard in quota.hard.items():
        wanted, used = demand.of(resource), quota.used.get(resource, 0)
        others = max(used - demand.present[resource], 0)
        missing = wanted - (hard - others)
        if not wanted or missing <= 0:
            continue
        where, name = demand.field(resource), plain(resource)
        parts = demand.parts(resource)
        beside = f", {amount(name, others)} of it used by others" if others else ""
        yield _VERDICTS.reject(
            "QuotaExceeded",
            f"ResourceQuota {quota.name} allows {amount(name, hard)} of {resource}{beside}; "
            f"{amount(name, wanted)} needed{f' ({parts})' if parts else ''}: "
            f"{f'lower {where}, or ' if where else ''}ask the namespace's owner for "
            f"{amount(name, missing)} more",
            field=where,
        )


def _unset(quota: Quota, demand: Demand) -> Iterator[CheckResult]:
    for workload, _ in demand.workloads:
        sidecars = {each["name"] for each in workload.pod["initContainers"] if "restartPolicy" in each}
        for resource, containers in unset(quota, workload.pod):
            where = _section(workload.component, resource)
            way = f"set {where}, or ask" if sidecars.isdisjoint(containers) else "ask"
            yield _VERDICTS.reject(
                "QuotaUnspecified",
                f"ResourceQuota {quota.name} counts {resource}, so every container has to set it, which "
                f"{', '.join(containers)} of {workload.name} does not: {way} the namespace's owner for a "
                "LimitRange with a default",
                field=where,
            )


def _section(component: Component, resource: str) -> str:
    """Path of the very field, such as `spec.engine.resources.limits.cpu`."""
    owner = "router" if component is Component.PICKER else "engine"
    side = "limits" if resource.startswith("limits.") else "requests"
    return f"spec.{owner}.resources.{side}.{plain(resource)}"


def _left_out(quota: Quota) -> CheckResult:
    return _VERDICTS.warn(
        "QuotaNotCounted",
        f"ResourceQuota {quota.name} is left out: its scope {', '.join(quota.open_scopes)} depends on more "
        "than the resource says",
    )
