"""The disk tier's folder, which one engine has at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from kvtier_connector.core.disk.files.directory import Directory
from kvtier_connector.core.disk.files.disk_errors import disk_errors
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError

_LOCK = "lock"
_LONGEST_HOLDER_BYTES = 200


class LockedFolder:
    """A folder that nobody else has until `close`, or until this process ends in whatever way."""

    def __init__(self, directory: Directory, descriptor: int) -> None:
        self.directory = directory
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, holder: str) -> Self:
        """Make the folder if need be, and lock it.

        Args:
            path: the folder.
            holder: one line by which others are told who has it.

        Raises:
            SettingError: a file is in its place, or it may not be written; the message says which.
            UnsafeFolderError: it, or its lock, may be another user's.
            FolderInUseError: another engine has it.
            DiskError: the disk is full, read-only or failing.
        """
        with disk_errors(path), ExitStack() as undo:
            with _setting_errors(path):
                directory = Directory.open(path)
                undo.callback(directory.close)
                descriptor = directory.file(_LOCK)
            undo.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                line = os.pread(descriptor, _LONGEST_HOLDER_BYTES, 0).decode(errors="replace").strip()
                other = "".join(letter if letter.isprintable() else "?" for letter in line)
                raise FolderInUseError(
                    f"disk_path: {path} is in use by {other or 'another engine'}; "
                    "give every engine a folder of its own"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode()[:_LONGEST_HOLDER_BYTES], 0)
            undo.pop_all()
        return cls(directory, descriptor)

    def check(self) -> None:
        """See that the folder is still the one that was taken.

        Raises:
            DiskError: it has been deleted or replaced, so that nobody will find what is written to it.
        """
        path = self.directory.path
        with disk_errors(path):
            # By its path, as the next engine will look for it; nothing is opened.
            found, taken = (path / _LOCK).lstat(), os.fstat(self._descriptor)
            if (found.st_dev, found.st_ino) != (taken.st_dev, taken.st_ino):
                raise DiskError(f"{path}: the folder has been replaced by another")

    def close(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)
        self.directory.close()


@contextmanager
def _setting_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise SettingError(f"disk_path: {path}: {error.filename} is a file; name a folder") from error
    except PermissionError as error:
        user = os.geteuid()
        # what is there goes with it; where nothing is, all else on the volume stays whose it is
        command = f"chown -R {user}" if os.path.lexists(path) else f"install -d -o {user} -m 700"
        raise SettingError(
            f"disk_path: no permission to write {path} as user {user}; as root: {command} {path}, or name "
            "another folder"
        ) from error
