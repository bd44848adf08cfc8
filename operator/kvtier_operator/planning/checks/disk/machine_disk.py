"""Whether this machine's disk can hold the tier of a local run."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import size_exact
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("machine-disk", "spec.tiers.disk.capacity")


def machine_disk(given: CheckInput) -> CheckResult:
    """Capacity of all replicas against free space, with what a run before this one left to be taken over."""
    disk, free = given.spec.tiers.disk, given.machine.disk_free_bytes
    if disk is None or free is None or not given.backend.bytes_per_rank[Tier.DISK]:
        return _VERDICTS.passed("no disk of this machine to look at", reason="NotLooked")
    needed = disk.capacity.bytes * max(1, given.spec.least_replicas)
    own = given.machine.disk_own_bytes if given.traits.disk.folder is Folder.OWN else 0
    room = f"{size_exact(free)} free" + (f" and {size_exact(own)} of its own" if own else "")
    if needed <= free + own:
        return _VERDICTS.passed(f"{size_exact(needed)} needed, {room}")
    return _VERDICTS.reject(
        "DiskTooSmall",
        f"the disk tier needs {size_exact(needed)}, this machine has {room}; lower the capacity",
    )
