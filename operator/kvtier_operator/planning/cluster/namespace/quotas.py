"""What the ResourceQuotas of a namespace leave too little of for a Plan."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.cluster.namespace.demand import Demand
from kvtier_operator.planning.cluster.namespace.fields import less
from kvtier_operator.planning.cluster.namespace.names import plain
from kvtier_operator.planning.cluster.namespace.quota import Quota, unset
from kvtier_operator.planning.cluster.nodes.shortage import amount
from kvtier_operator.planning.pod_template.template import ENGINE, ROUTER, added_containers
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("quota", "metadata.namespace")
_OWNERS: Final = {
    Component.ENGINE: "spec.engine",
    Component.PICKER: "spec.router",
    Component.GATEWAY: "spec.router.gateway.standalone",
}
NO_QUOTA: Final = _VERDICTS.passed("no ResourceQuota")


def quotas(demand: Demand, found: Sequence[Quota]) -> tuple[CheckResult, ...]:
    """Refusals; then rollouts that would wait, and quotas of which it is unknown whether they count these."""
    ours = [each for each in found if each.counts_ours]
    refusals = [result for each in ours for result in (*_exceeded(each, demand), *_unset(each, demand))]
    remarks = [result for each in ours for result in _rollouts(each, demand)]
    remarks += [_left_out(each) for each in found if each.open_scopes]
    if refusals or remarks:
        return (*refusals, *remarks)
    beside = f" {demand.company}" if demand.before else ""
    return (_VERDICTS.passed(f"{many(len(ours), 'ResourceQuota')} to count in, with room for it{beside}"),)


def _exceeded(quota: Quota, demand: Demand) -> Iterator[CheckResult]:
    for resource in quota.hard:
        missing = _missing(quota, demand, resource)
        if not demand.of(resource) or missing <= 0:
            continue
        where = demand.field(resource, missing)
        ways = [*([less(where, resource)] if where else ()), _ask(resource, missing)]
        yield _VERDICTS.reject(
            "QuotaExceeded",
            f"{_allowed(quota, demand, resource)}; {demand.needed(resource)}: {', or '.join(ways)}",
            field=where,
        )


def _rollouts(quota: Quota, demand: Demand) -> Iterator[CheckResult]:
    """What runs fits, and not what a rollout makes beside it."""
    for resource in quota.hard:
        missing, surge = _missing(quota, demand, resource), demand.surge(resource)
        if not surge or missing > 0 or missing + surge <= 0:
            continue
        yield _VERDICTS.warn(
            "QuotaHoldsRollout",
            f"{_allowed(quota, demand, resource)}, which is enough; {demand.needed_for_rollout(resource)}: "
            f"a rollout would wait; {_ask(resource, missing + surge)}",
            by_itself="goes on with one as soon as there is room",
        )


def _missing(quota: Quota, demand: Demand, resource: str) -> int:
    """How much more it would have to allow; negative where there is room."""
    return demand.all_of(resource) + _others(quota, demand, resource) - quota.hard[resource]


def _others(quota: Quota, demand: Demand, resource: str) -> int:
    return max(quota.used.get(resource, 0) - demand.present(resource), 0)


def _allowed(quota: Quota, demand: Demand, resource: str) -> str:
    name, others = plain(resource), _others(quota, demand, resource)
    beside = f", {amount(name, others)} of it used by others" if others else ""
    return f"ResourceQuota {quota.name} allows {amount(name, quota.hard[resource])} of {resource}{beside}"


def _ask(resource: str, missing: int) -> str:
    return f"ask the namespace's owner for {amount(plain(resource), missing)} more"


def _unset(quota: Quota, demand: Demand) -> Iterator[CheckResult]:
    for workload, _ in demand.workloads:
        added = _added(demand.plan.resource.spec, workload.component)
        restarted = {each["name"] for each in workload.pod["initContainers"] if "restartPolicy" in each}
        sidecars = restarted - added.keys()
        for resource, containers in unset(quota, workload.pod):
            own = _OWNERS[workload.component]
            fields = [*dict.fromkeys(_section(added.get(each, own), resource) for each in containers)]
            way = f"set {' and '.join(fields)}, or ask" if sidecars.isdisjoint(containers) else "ask"
            yield _VERDICTS.reject(
                "QuotaUnspecified",
                f"ResourceQuota {quota.name} counts {resource}, so every container has to set it, which "
                f"{', '.join(containers)} of {workload.name} does not: {way} the namespace's owner for a "
                "LimitRange with a default",
                field=fields[0],
            )


def _added(spec: Spec, component: Component) -> dict[str, str]:
    """Of the gateway's pods there is no template."""
    templates = {
        Component.ENGINE: (spec.engine.pod_template, ENGINE),
        Component.PICKER: (spec.router.pod_template, ROUTER),
    }
    return added_containers(*templates[component]) if component in templates else {}


def _section(owner: str, resource: str) -> str:
    """Path of the very field, such as `spec.engine.resources.limits.cpu`."""
    side = "limits" if resource.startswith("limits.") else "requests"
    return f"{owner}.resources.{side}.{plain(resource)}"


def _left_out(quota: Quota) -> CheckResult:
    return _VERDICTS.warn(
        "QuotaNotCounted",
        f"ResourceQuota {quota.name}: its scope {', '.join(quota.open_scopes)} depends on more "
        "than the resource says; see yourself whether it is for these pods",
        by_itself="leaves it out",
    )
