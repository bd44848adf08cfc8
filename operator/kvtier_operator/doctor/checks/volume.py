"""Whether a volume of the disk tier is there, writable and large enough."""

from dataclasses import dataclass

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import VolumeDemand
from kvtier_operator.planning.units import size


@dataclass(frozen=True, slots=True)
class VolumeFacts:
    """What was tried in the volume's folder.

    Attributes:
        refusal: Why nothing can be written there, in the kernel's words; empty where it can.
        free_bytes: Free space for this user.
        own_bytes: What an earlier start left there, which the tier takes over or empties.
        direct_io_refusal: Why O_DIRECT fails there; empty where it works or was not asked for.
    """

    refusal: str
    free_bytes: int
    own_bytes: int
    direct_io_refusal: str


def volume(demand: VolumeDemand, found: VolumeFacts, place: Place) -> Verdict:
    """Not writable or too small fails; O_DIRECT that does not work warns."""
    check = f"disk {demand.path}"
    if found.refusal:
        advice = "see the volume's permissions (fsGroup, readOnly)" if place.in_pod else "see its permissions"
        return Verdict.failed(check, f"not writable on {place.name}: {found.refusal}; {advice}")
    room = found.free_bytes + found.own_bytes
    own = f" and {size(found.own_bytes)} of its own" if found.own_bytes else ""
    numbers = f"{size(demand.bytes)} needed, {size(found.free_bytes)} free{own} on {place.name}"
    if room < demand.bytes:
        return Verdict.failed(
            check,
            f"{numbers}; lower spec.tiers.disk.capacity by {size(demand.bytes - room)}, or use a larger "
            "spec.tiers.disk.volume",
        )
    if found.direct_io_refusal:
        return Verdict.warned(
            check,
            f"{numbers}, but O_DIRECT does not work there ({found.direct_io_refusal}): reads go through the "
            "page cache; use a filesystem that has it, such as ext4 or xfs, or set spec.tiers.disk.directIO "
            "to false",
        )
    return Verdict.passed(check, numbers)
