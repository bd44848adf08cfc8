"""Folders of the node as a disk tier."""

from typing import Final

from kvtier_operator.api.resource import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import size

_VERDICTS: Final = Verdicts("host-path", "spec.tiers.disk.volume.hostPath")


def host_path(given: CheckInput) -> CheckResult:
    """The kubelet neither counts nor bounds nor removes what lies in a hostPath.

    What sharing one means to backend KVTier is the check disk-folder's.
    """
    disk = given.spec.tiers.disk
    volumes = (disk.volume, *disk.extra_volumes) if disk else ()
    folders = [volume.host_path.path for volume in volumes if volume.host_path]
    if not disk or not folders:
        return _VERDICTS.passed("no hostPath", reason="NoHostPath")
    shared = (
        f"; {given.spec.replicas} replicas on one node would share it, so keep them "
        "apart with a required anti-affinity by host name in spec.engine.affinity"
        if given.spec.replicas > 1
        and given.spec.backend is not Backend.KVTIER
        and not given.one_engine_a_node
        else ""
    )
    return _VERDICTS.warn(
        "HostPathNotAccounted",
        f"{', '.join(folders)} on the node: Kubernetes neither reserves nor frees its "
        f"{size(disk.capacity.bytes)}, and Pod Security forbids hostPath outside privileged "
        f"namespaces{shared}",
    )
