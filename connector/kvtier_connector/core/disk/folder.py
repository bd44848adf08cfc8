"""The disk tier's folder, which one engine has at a time."""

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from kvtier_connector.core.disk.failure import disk_errors
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError

_LOCK = "lock"
_LONGEST_HOLDER_BYTES = 200


class LockedFolder:
    """A folder that nobody else has until `close`, or until this process ends in whatever way."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, holder: str) -> Self:
        """Make the folder if need be, and lock it.

        Args:
            path: the folder.
            holder: one line by which others are told who has it.

        Raises:
            SettingError: a file is in its place, or it may not be written; the message says which.
            FolderInUseError: another engine has it.
            DiskError: the disk is full, read-only or failing.
        """
        with disk_errors(path), ExitStack() as undo:
            descriptor = _open_lock(path)
            undo.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                other = os.pread(descriptor, _LONGEST_HOLDER_BYTES, 0).decode(errors="replace").strip()
                raise FolderInUseError(
                    f"disk_path: {path} is in use by {other or 'another engine'}; "
                    "give every engine a folder of its own"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode()[:_LONGEST_HOLDER_BYTES], 0)
            undo.pop_all()
        return cls(path, descriptor)

    def check(self) -> None:
        """See that the folder is still the one that was taken.

        Raises:
            DiskError: it has been deleted or replaced, so that nobody will find what is written to it.
        """
        with disk_errors(self.path):
            found, taken = (self.path / _LOCK).stat(), os.fstat(self._descriptor)
            if (found.st_dev, found.st_ino) != (taken.st_dev, taken.st_ino):
                raise DiskError(f"{self.path}: the folder has been replaced by another")

    def close(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)


def _open_lock(path: Path) -> int:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (FileExistsError, NotADirectoryError) as error:
        raise SettingError(f"disk_path: {error.filename} is a file; name a folder") from error
    except PermissionError as error:
        raise SettingError(
            f"disk_path: no permission to write {error.filename} as user {os.geteuid()}; "
            "give the folder to that user or name another"
        ) from error
