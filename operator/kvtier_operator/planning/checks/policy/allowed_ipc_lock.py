"""Whether the cluster's owner lets engines have IPC_LOCK."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import ALLOW
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.objects.engine.containers import wants_ipc_lock
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-ipc-lock", "spec.tiers.cpu.memlock.policy")


def allowed_ipc_lock(given: CheckInput) -> CheckResult:
    """Locked memory is taken from everybody on the node."""
    if given.policy.ipc_lock == ALLOW or not wants_ipc_lock(given.spec):
        return _VERDICTS.passed("no capability is asked for that the cluster's owner denies")
    return _VERDICTS.reject(
        "IpcLockDenied", "the cluster's owner lets no engine have IPC_LOCK, which Require takes: write Prefer"
    )
