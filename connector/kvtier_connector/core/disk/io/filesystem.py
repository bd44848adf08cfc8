"""On which file systems a transfer is handed over without waiting for the device.

io_uring begins a transfer within the system call that submits it, and relies on the file system to say where
that would wait. FUSE, for one, says it can and then waits for its server (seen on Linux 6.18): a server that
hangs would hang the thread that submits, and with it every deadline.
"""

import ctypes
import os
from pathlib import Path
from typing import Final

_STATFS_BYTES: Final = 256
"""`struct statfs` takes 120; its first member, a long, is the kind (statfs(2))."""
_KINDS: Final = {
    0xEF53: "ext4",
    0x58465342: "XFS",
    0x9123683E: "Btrfs",
    0xF2F52010: "F2FS",
    0x01021994: "tmpfs",
}
"""Those that are local and know how not to wait; the numbers are linux/magic.h's."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def submission_obstacle(folder: Path) -> str:
    """Return why a submission to this folder's files may wait for the device; empty if it does not.

    Raises:
        OSError: the folder cannot be looked at.
    """
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.statfs(os.fsencode(folder), answer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
    kind = ctypes.c_ulong.from_buffer(answer).value
    if kind in _KINDS:
        return ""
    known = ", ".join(_KINDS.values())
    return f"its submissions may wait for this file system, kind {kind:#x}, which is not one of {known}"
