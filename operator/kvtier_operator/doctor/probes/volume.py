"""Writes to a folder of the disk tier, and leaves nothing behind."""

import mmap
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kvtier_operator.doctor.checks.volume import VolumeFacts
from kvtier_operator.planning.pod.demands import VolumeDemand

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
    found = os.statvfs(demand.path)
    free = found.f_bavail * found.f_frsize
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
