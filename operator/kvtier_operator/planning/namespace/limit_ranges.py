"""What the LimitRanges of a namespace refuse of a Plan's pods and of the volumes made with them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.checks.check import Verdicts
from kvtier_operator.planning.namespace.limit_range import (
    CLAIM,
    CONTAINER,
    POD,
    Limit,
    LimitRange,
    admitted,
    container_faults,
    faults,
)
from kvtier_operator.planning.namespace.names import STORAGE, field
from kvtier_operator.planning.namespace.workload import Workload
from kvtier_operator.planning.nodes.pod_needs import container_limits, container_requests, pod_total
from kvtier_operator.planning.nodes.shortage import amount
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import many

_VERDICTS: Final = Verdicts("limit-range", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class _Fault:
    """What one LimitRange refuses, of whatever the words say."""

    limit_range: str
    field: str
    words: str


def limit_ranges(workloads: Sequence[Workload], ranges: Sequence[LimitRange]) -> tuple[CheckResult, ...]:
    """Refusals, one for each thing that is wrong; then the limits that containers get without asking."""
    if not ranges:
        return (_VERDICTS.passed("no LimitRange"),)
    refusals = tuple(_refusals(workloads, ranges))
    remarks = tuple(_remarks(workloads, ranges))
    if refusals or remarks:
        return (*refusals, *remarks)
    return (_VERDICTS.passed(f"{many(len(ranges), 'LimitRange')}, which refuse nothing of it"),)


def _refusals(workloads: Sequence[Workload], ranges: Sequence[LimitRange]) -> Iterator[CheckResult]:
    found: defaultdict[_Fault, list[str]] = defaultdict(list)
    for workload in workloads:
        pod = admitted(workload.pod, ranges)
        for one in ranges:
            for who, fault in _of_range(one, workload, pod):
                found[fault].append(who)
    for fault, places in found.items():
        yield _VERDICTS.reject(
            "LimitRangeRefuses",
            f"LimitRange {fault.limit_range}: {', '.join(dict.fromkeys(places))} {fault.words}: set "
            f"{fault.field} within that, or ask the namespace's owner for other bounds",
            field=fault.field,
        )


def _of_range(one: LimitRange, workload: Workload, pod: Mapping[str, Any]) -> Iterator[tuple[str, _Fault]]:
    for limit in one.of(CONTAINER):
        for container in _containers(pod):
            who = f"container {container['name']} of {workload.name}"
            yield from _faults(one, workload, who, container_faults(limit, container))
    for limit in one.of(POD):
        totals = pod_total(pod, container_requests), pod_total(pod, container_limits)
        yield from _faults(one, workload, f"a pod of {workload.name}", faults(limit, *totals))
    for limit in one.of(CLAIM):
        yield from _claim_faults(one, limit, workload)


def _claim_faults(one: LimitRange, limit: Limit, workload: Workload) -> Iterator[tuple[str, _Fault]]:
    for claim in workload.claims:
        who = f"volume {claim.volume} of {workload.name}"
        yield from _faults(one, workload, who, faults(limit, {STORAGE: claim.storage_bytes}, {}))


def _faults(
    one: LimitRange, workload: Workload, who: str, found: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, _Fault]]:
    for resource, words in found:
        yield who, _Fault(one.name, field(workload.component, resource), words)


def _remarks(workloads: Sequence[Workload], ranges: Sequence[LimitRange]) -> Iterator[CheckResult]:
    """Limits that the engine's or picker's own container gets: it runs, and slower or with less memory."""
    for workload in workloads:
        before, after = (_containers(pod)[-1] for pod in (workload.pod, admitted(workload.pod, ranges)))
        asked, given = container_limits(before), container_limits(after)
        for resource in sorted(given.keys() - asked.keys()):
            where = field(workload.component, resource)
            yield _VERDICTS.warn(
                "LimitRangeSetsLimit",
                f"the namespace gives container {after['name']} of {workload.name} a limit of "
                f"{amount(resource, given[resource])} {resource}, since {where} sets none",
                field=where,
            )


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All of them, the main one last."""
    return [*pod.get("initContainers", ()), *pod["containers"]]
