"""What the LimitRanges of a namespace refuse of a Plan's pods and of the volumes made with them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.cluster.namespace.fields import SOURCE, WEIGHTS, claim_field, field, less
from kvtier_operator.planning.cluster.namespace.limit_range import (
    CLAIM,
    CONTAINER,
    POD,
    LimitRange,
    admitted,
    container_faults,
    faults,
)
from kvtier_operator.planning.cluster.namespace.names import STORAGE
from kvtier_operator.planning.cluster.namespace.workload import Workload
from kvtier_operator.planning.cluster.nodes.pod_needs import container_limits, container_requests, pod_total
from kvtier_operator.planning.cluster.nodes.shortage import amount
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("limit-range", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class _Fault:
    """What one LimitRange refuses, of whatever the words say, and what to do."""

    limit_range: str
    field: str
    words: str
    way: str


def limit_ranges(
    plan: Plan, workloads: Sequence[Workload], ranges: Sequence[LimitRange]
) -> tuple[CheckResult, ...]:
    """Refusals, one for each thing that is wrong; then the limits that containers get without asking."""
    if not ranges:
        return (_VERDICTS.passed("no LimitRange"),)
    refusals = tuple(_refusals(plan, workloads, ranges))
    remarks = tuple(_remarks(plan, workloads, ranges))
    if refusals or remarks:
        return (*refusals, *remarks)
    return (_VERDICTS.passed(f"{many(len(ranges), 'LimitRange')}, which refuse nothing of it"),)


def _refusals(
    plan: Plan, workloads: Sequence[Workload], ranges: Sequence[LimitRange]
) -> Iterator[CheckResult]:
    found: defaultdict[_Fault, list[str]] = defaultdict(list)
    for workload in workloads:
        pod = admitted(workload.pod, ranges)
        for one in ranges:
            for who, fault in _of_range(plan, one, workload, pod):
                found[fault].append(who)
    for fault, places in found.items():
        yield _VERDICTS.reject(
            "LimitRangeRefuses",
            f"LimitRange {fault.limit_range}: {', '.join(dict.fromkeys(places))} {fault.words}: "
            f"{fault.way}, or ask the namespace's owner for other bounds",
            field=fault.field,
        )


def _of_range(
    plan: Plan, one: LimitRange, workload: Workload, pod: Mapping[str, Any]
) -> Iterator[tuple[str, _Fault]]:
    for who, found in _pod_faults(one, workload.name, pod):
        for resource, words in found:
            yield who, _fault(one, field(plan, workload, resource), resource, words)
    for limit in one.of(CLAIM):
        for claim in workload.claims:
            who = f"volume {claim.volume} of {workload.name}"
            for resource, words in faults(limit, {STORAGE: claim.storage_bytes}, {}):
                yield who, _fault(one, claim_field(workload.component, claim.volume), resource, words)


def _pod_faults(
    one: LimitRange, name: str, pod: Mapping[str, Any]
) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    for limit in one.of(CONTAINER):
        for container in _containers(pod):
            yield f"container {container['name']} of {name}", container_faults(limit, container)
    for limit in one.of(POD):
        totals = pod_total(pod, container_requests), pod_total(pod, container_limits)
        yield f"a pod of {name}", faults(limit, *totals)


def _fault(one: LimitRange, where: str, resource: str, words: str) -> _Fault:
    way = less(where, resource) if where in (SOURCE, WEIGHTS) else f"set {where} within that"
    return _Fault(one.name, where, words, way)


def _remarks(
    plan: Plan, workloads: Sequence[Workload], ranges: Sequence[LimitRange]
) -> Iterator[CheckResult]:
    """Limits that the engine's or picker's own container gets: it runs, and slower or with less memory."""
    for workload in workloads:
        # kvtier's own comes before those that a pod template adds
        before, after = (pod["containers"][0] for pod in (workload.pod, admitted(workload.pod, ranges)))
        asked, given = container_limits(before), container_limits(after)
        for resource in sorted(given.keys() - asked.keys()):
            where = field(plan, workload, resource)
            yield _VERDICTS.warn(
                "LimitRangeSetsLimit",
                f"the namespace gives container {after['name']} of {workload.name} a limit of "
                f"{amount(resource, given[resource])} {resource}, since {where} sets none; set "
                "it to what the container needs",
                by_itself="leaves that to the namespace",
                field=where,
            )


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]
