"""What is known of a namespace, and everything that it would refuse of a Plan."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kvtier_operator.planning.cluster.namespace.demand import Demand
from kvtier_operator.planning.cluster.namespace.limit_range import LimitRange, admitted
from kvtier_operator.planning.cluster.namespace.limit_ranges import limit_ranges
from kvtier_operator.planning.cluster.namespace.quota import Quota, claim_usage, object_usage, pod_usage
from kvtier_operator.planning.cluster.namespace.quotas import NO_QUOTA, quotas
from kvtier_operator.planning.cluster.namespace.storage import StorageClass, storage
from kvtier_operator.planning.cluster.namespace.workload import DEPLOYMENT, Workload, workload
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_UNSEEN: Final = Verdicts("namespace", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and what is around it.

    Attributes:
        limit_ranges: Its LimitRanges; None where they are not known.
        quotas: Its ResourceQuotas; None where they are not known.
        storage_classes: The cluster's; None where they are not known.
        claims: Those of its claims that matter; None where they are not known.
        present: Deployments of this very resource that run in it already, with the pods that there are.
        unseen: What could not be looked at, and why.
    """

    limit_ranges: tuple[LimitRange, ...] | None = ()
    quotas: tuple[Quota, ...] | None = ()
    storage_classes: tuple[StorageClass, ...] | None = None
    claims: frozenset[str] | None = None
    present: tuple[Workload, ...] = ()
    unseen: tuple[str, ...] = ()


UNBOUNDED: Final = Namespace()
"""A namespace of which nothing is known."""


def refusals(plan: Plan, namespace: Namespace, before: Sequence[Demand] = ()) -> tuple[CheckResult, ...]:
    """What the namespace would refuse, and what a reader should know of it.

    Nothing of it makes a plan wrong: bounds may change, so the operator applies it all the same.

    Args:
        plan: The Plan.
        namespace: Where.
        before: Of other Plans for it, counted in its quotas before this one.
    """
    objects = build_objects(plan)
    workloads = _workloads(plan, objects)
    return (
        *(() if namespace.limit_ranges is None else limit_ranges(plan, workloads, namespace.limit_ranges)),
        *_quotas(plan, namespace, before),
        *storage(workloads, namespace.storage_classes, namespace.claims),
        *(
            _UNSEEN.warn("NamespaceNotSeen", f"{each}; ask with more rights", by_itself="plans without")
            for each in namespace.unseen
        ),
    )


def demand(plan: Plan, namespace: Namespace, before: Sequence[Demand] = ()) -> Demand:
    """What a Plan asks of the namespace's quotas; arguments as of `refusals`."""
    objects = build_objects(plan)
    counted = _counted(_workloads(plan, objects), namespace)
    there = _counted(namespace.present, namespace)
    made = object_usage(objects)
    present: Counter[str] = Counter(made) if there else Counter()
    for each, usage in there:
        present += Counter({name: value * each.pods for name, value in usage.items()})
    return Demand(plan, counted, made, present, tuple(before))


def _workloads(plan: Plan, objects: Iterable[Mapping[str, Any]]) -> list[Workload]:
    """The Plan's pods: of engines that an autoscaler scales, as many as there may be."""
    most = plan.resource.spec.most_replicas
    return [workload(each, scaled_to=most) for each in objects if each["kind"] == DEPLOYMENT]


def _quotas(plan: Plan, namespace: Namespace, before: Sequence[Demand]) -> tuple[CheckResult, ...]:
    """Nothing is counted where nobody counts: the operator asks for every resource."""
    if namespace.quotas is None:
        return ()
    return quotas(demand(plan, namespace, before), namespace.quotas) if namespace.quotas else (NO_QUOTA,)


def _counted(
    workloads: Iterable[Workload], namespace: Namespace
) -> tuple[tuple[Workload, Counter[str]], ...]:
    """Pods as the LimitRanges leave them, and what each counts for with the volumes that come with it."""
    default = next((each.name for each in namespace.storage_classes or () if each.default), None)
    found = []
    for each in workloads:
        pod = admitted(each.pod, namespace.limit_ranges or ())
        usage = pod_usage(pod)
        for claim in each.claims:
            usage += claim_usage(claim, default)
        found.append((replace(each, pod=pod), usage))
    return tuple(found)
