"""Whether every engine pod has a disk folder to itself."""

from typing import Final

from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("disk-folder", "spec.tiers.disk.volume")


def disk_folder(given: CheckInput) -> CheckResult:
    """A backend may lock its folder: a second engine there is refused at its start, with the holder's name.

    Source: kvtier_connector.core.disk.files.folder.
    """
    disk, here = given.spec.tiers.disk, given.observed.machine is not None
    replicas = given.spec.least_replicas if here else given.spec.most_replicas
    if disk is None:
        return _VERDICTS.passed("no disk tier", reason="NoDiskTier")
    if given.traits.disk.folder is not Folder.OWN:
        those = any_backend_that(lambda traits: traits.disk.folder is Folder.OWN)
        return _VERDICTS.passed(f"backend {those} alone needs its folder to itself", reason="NotAskedFor")
    claim, host = disk.volume.persistent_volume_claim, disk.volume.host_path
    kept_apart = host and not here and given.one_engine_a_node
    if replicas <= 1 or kept_apart or not (host or (claim and not here)):
        return _VERDICTS.passed("each engine pod has a folder of its own")
    if claim:
        return _VERDICTS.reject(
            "FolderShared",
            f"{replicas} replicas would share claim {claim.claim_name}, and an engine needs its folder to "
            "itself: use ephemeral, which makes a volume for each pod, or set "
            f"{given.spec.most_replicas_field} to 1",
        )
    if here:
        return _VERDICTS.reject(
            "FolderShared",
            f"{replicas} replicas of this machine would share it, and an engine needs its folder to itself: "
            f"use emptyDir, or set {given.spec.least_replicas_field} to 1",
            field="spec.tiers.disk.volume.hostPath",
        )
    return _VERDICTS.warn(
        "OneEngineOfANode",
        f"an engine needs its folder to itself: of {replicas} replicas a second one on a node does not "
        "start; keep them apart with a required anti-affinity by host name in spec.engine.affinity",
        by_itself="starts all of them, and EnginesReady names the pod that finds its folder taken",
        field="spec.tiers.disk.volume.hostPath",
    )
