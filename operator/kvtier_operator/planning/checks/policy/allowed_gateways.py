"""Whether the cluster's owner lets a route attach to another namespace's Gateway."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import permits
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.checks.policy.denial import Denial
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-gateways", "spec.router.gateway.parentRef.namespace")
_DENIAL: Final = Denial(
    _VERDICTS,
    "GatewayDenied",
    nothing="no route attach to a Gateway of another namespace",
    these="routes attach to these Gateways of other namespaces",
)


def allowed_gateways(given: CheckInput) -> CheckResult:
    """A Gateway of the resource's own namespace is always allowed."""
    limit, gateway = given.policy.foreign_gateways, given.spec.router.gateway
    own = given.resource.metadata.namespace
    parent = gateway.parent_ref if gateway else None
    namespace = (parent.namespace if parent else None) or own
    if parent is None or namespace == own or permits(limit, f"{namespace}/{parent.name}"):
        return _VERDICTS.passed("no Gateway is asked for that the cluster's owner denies")
    asked = (_VERDICTS.field, f"{namespace}/{parent.name}")
    return _DENIAL.of(limit, [asked], f"attach to one of namespace {own}")
