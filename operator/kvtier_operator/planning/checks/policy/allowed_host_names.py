"""Whether the cluster's owner lets routes have these host names."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import ALLOW, Limit
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.checks.policy.denial import Denial
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-host-names", "spec.router.gateway.hostnames")
_DENIAL: Final = Denial(
    _VERDICTS,
    "HostNameDenied",
    nothing="no route be made",
    these="routes have these host names",
)


def allowed_host_names(given: CheckInput) -> CheckResult:
    """A route without host names has all of its Gateway's, so that with any limit it must name some."""
    limit, gateway = given.policy.host_names, given.spec.router.gateway
    if gateway is None or gateway.parent_ref is None or limit == ALLOW:
        return _VERDICTS.passed("no host name is asked for that the cluster's owner denies")
    denied = [
        (f"{_VERDICTS.field}[{index}]", name)
        for index, name in enumerate(gateway.hostnames)
        if not _permits(limit, name)
    ]
    if not gateway.hostnames:
        denied = [(_VERDICTS.field, "a route without any, which has all of the Gateway's,")]
    if not denied:
        return _VERDICTS.passed("the cluster's owner allows these host names")
    return _DENIAL.of(limit, denied, "leave the gateway out")


def _permits(limit: Limit, name: str) -> bool:
    """`*.example.com` allows itself and every name below it."""
    return not isinstance(limit, str) and any(
        name == each or (each.startswith("*.") and name.endswith(each[1:])) for each in limit
    )
