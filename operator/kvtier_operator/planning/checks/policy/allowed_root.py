"""Whether the cluster's owner lets engines be root."""

from typing import Final

from kvtier_operator.planning.base.owner_policy import ALLOW
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.objects.engine.containers import runs_as_root, wants_ipc_lock
from kvtier_operator.planning.pod.budget import written_host_folders
from kvtier_operator.planning.pod_template.template import root_fields
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("allowed-root", "spec.tiers.disk.volume.hostPath")
_MEMLOCK: Final = "spec.tiers.cpu.memlock.policy"


def allowed_root(given: CheckInput) -> CheckResult:
    """A folder of the node, IPC_LOCK or a pod template makes them so."""
    templates = root_fields(given.spec)
    if given.policy.root_engines == ALLOW or not (runs_as_root(given.spec) or templates):
        return _VERDICTS.passed("no engine is root that the cluster's owner denies")
    makes_root = "the cluster's owner lets no engine be root, which this makes it: "
    faults = [(_MEMLOCK, f"{makes_root}write Prefer")] if wants_ipc_lock(given.spec) else []
    faults += [
        (field, f"{makes_root}take another kind of volume") for field, _ in written_host_folders(given.spec)
    ]
    faults += [(field, f"{makes_root}have it say runAsNonRoot: true and another user") for field in templates]
    return _VERDICTS.reject_each("RootDenied", faults)
