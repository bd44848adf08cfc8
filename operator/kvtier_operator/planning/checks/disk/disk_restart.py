"""What the disk tier is worth after a restart, and whether it stays within its size."""

from typing import Final

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("disk-restart", "spec.tiers.disk")


def disk_restart(given: CheckInput) -> CheckResult:
    """What the backend says of its disk tier."""
    disk = given.spec.tiers.disk
    if disk is None:
        return _VERDICTS.passed("no disk tier", reason="NoDiskTier")
    if caveat := given.traits.disk.caveat:
        return _VERDICTS.warn(caveat.reason, caveat.message, by_itself=caveat.by_itself)
    return _VERDICTS.passed(
        f"backend {given.spec.backend} keeps to the capacity and is warm after a restart"
        + _until(disk.volume)
    )


def _until(volume: Volume) -> str:
    return (
        "" if volume.persistent_volume_claim or volume.host_path else ", until its pod goes with the volume"
    )
