"""What the disk tier is worth after a restart, and whether it stays within its size."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.api.volume import Volume
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("disk-restart", "spec.tiers.disk")
_EMPTIED: Final = "empties the folder before each start"
_WARNINGS: Final = {
    Backend.NATIVE: (
        "DiskUnbounded",
        (
            "vLLM's fs tier deletes nothing and checks nothing it reads: spec.tiers.disk.capacity bounds the "
            "volume only, and a full one stops caching; clean the folder yourself, or use a volume that goes "
            "with the pod"
        ),
        "deletes nothing there",
    ),
    Backend.LMCACHE: (
        "DiskColdAfterRestart",
        (
            "LMCache's disk starts empty after every restart and never removes the files of an earlier one: "
            "choose it for size, not for warm restarts, which spec.backend KVTier has"
        ),
        _EMPTIED,
    ),
    Backend.LMCACHE_MP: (
        "DiskColdAfterRestart",
        "the server's disk tier starts empty after every restart; spec.backend KVTier's is warm then",
        _EMPTIED,
    ),
}


def disk_restart(given: CheckInput) -> CheckResult:
    """Known limits of each backend's disk tier (LMCache #1454, #2273, #4564; vLLM #54779)."""
    disk = given.spec.tiers.disk
    if disk is None:
        return _VERDICTS.passed("no disk tier", reason="NoDiskTier")
    if given.spec.backend is Backend.KVTIER:
        return _VERDICTS.passed(
            "backend KVTier keeps to the capacity and is warm after a restart" + _until(disk.volume)
        )
    reason, message, by_itself = _WARNINGS[given.spec.backend]
    return _VERDICTS.warn(reason, message, by_itself=by_itself)


def _until(volume: Volume) -> str:
    return (
        "" if volume.persistent_volume_claim or volume.host_path else ", until its pod goes with the volume"
    )
