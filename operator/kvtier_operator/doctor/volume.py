"""Whether a volume of the disk tier is there, writable and large enough."""

import mmap
import os
import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import VolumeDemand
from kvtier_operator.planning.units import size


@dataclass(frozen=True, slots=True)
class VolumeFacts:
    """What was tried in the volume's folder."""

    refusal: str  # why nothing can be written there, in the kernel's words; empty where it can
    free_bytes: int  # free space for this user
    own_bytes: int  # what an earlier start left there, which the tier takes over or empties
    direct_io_refusal: str  # why O_DIRECT fails there; empty where it works or was not asked for


def volume(demand: VolumeDemand, facts: VolumeFacts, place: Place) -> Verdict:
    """Not writable or too small fails; O_DIRECT that does not work warns."""
    check = f"disk {demand.path}"
    if facts.refusal:
        advice = "see the volume's permissions (fsGroup, readOnly)" if place.in_pod else "see its permissions"
        return Verdict.failed(check, f"not writable on {place.name}: {facts.refusal}; {advice}")
    usable = facts.free_bytes + facts.own_bytes
    own = f" and {size(facts.own_bytes)} of its own" if facts.own_bytes else ""
    numbers = f"{size(demand.bytes)} needed, {size(facts.free_bytes)} free{own} on {place.name}"
    if usable < demand.bytes:
        return Verdict.failed(
            check,
            f"{numbers}; lower spec.tiers.disk.capacity by {size(demand.bytes - usable)}, or use a larger "
            "spec.tiers.disk.volume",
        )
    if facts.direct_io_refusal:
        return Verdict.warned(
            check,
            f"{numbers}, but O_DIRECT does not work there ({facts.direct_io_refusal}): reads go through the "
            "page cache; use a filesystem that has it, such as ext4 or xfs, or set spec.tiers.disk.directIO "
            "to false",
        )
    return Verdict.passed(check, numbers)


_BLOCK_BYTES: Final = 4096
"""A multiple of every common disk's logical block, as O_DIRECT demands (open(2))."""
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_STAT_BLOCK_BYTES: Final = 512
"""The unit of st_blocks (stat(3type))."""


def probe_volume(demand: VolumeDemand) -> VolumeFacts:
    """Tries to write, with and without the page cache, and counts the space."""
    refusal = _write(demand.path, 0)
    if refusal:
        return VolumeFacts(refusal, 0, 0, "")
    filesystem = os.statvfs(demand.path)
    free = filesystem.f_bavail * filesystem.f_frsize
    return VolumeFacts(
        refusal="",
        free_bytes=free,
        # counting files takes time where there are many, and matters only where the rest is too small
        own_bytes=used_bytes(demand.path) if free < demand.bytes else 0,
        direct_io_refusal=_write(demand.path, os.O_DIRECT) if demand.direct_io else "",
    )


def _write(folder: str, flag: int) -> str:
    """Writes one block to a new file and removes it; returns why that failed, or nothing."""
    name = f".kvtier-doctor-{secrets.token_hex(8)}"  # not to be foreseen by others who write there
    try:
        with ExitStack() as undo:
            volume = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            undo.callback(os.close, volume)
            descriptor = os.open(name, _NEW | flag, 0o600, dir_fd=volume)
            undo.callback(os.unlink, name, dir_fd=volume)
            undo.callback(os.close, descriptor)
            with mmap.mmap(-1, _BLOCK_BYTES) as block:  # aligned to a page
                os.write(descriptor, block)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def used_bytes(folder: str | Path) -> int:
    """Bytes on disk of all files below; 0 where there is no such folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_blocks * _STAT_BLOCK_BYTES
            except OSError:  # gone meanwhile
                continue
    return total
