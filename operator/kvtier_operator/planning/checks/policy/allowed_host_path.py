"""Whether the cluster's owner lets a resource have these folders of the node."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import ALLOW, Limit
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.checks.policy.denial import Denial
from kvtier_operator.planning.pod.budget import host_folders
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-host-path", "spec.tiers.disk.volume.hostPath")
_DENIAL: Final = Denial(
    _VERDICTS,
    "HostPathDenied",
    nothing="no resource have a folder of the node",
    these="resources have these folders of the node",
)


def allowed_host_path(given: CheckInput) -> CheckResult:
    """With a list, these folders alone.

    Not what is below them: an engine is root in its folder and could put a link to any other there, which the
    container runtime would follow for the next one.
    """
    limit = given.policy.host_path
    denied = [(field, path) for field, path in host_folders(given.spec) if not _permits(limit, path)]
    if denied:
        return _DENIAL.of(limit, denied, "take another kind of volume")
    return _VERDICTS.passed("no folder of the node is asked for that the cluster's owner denies")


def _permits(limit: Limit, path: str) -> bool:
    if isinstance(limit, str):
        return limit == ALLOW
    return path.rstrip("/") in {each.rstrip("/") for each in limit}
