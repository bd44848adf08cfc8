"""Opens the folder that holds the disk tier's, step by step, refusing links that other users made."""

import errno
import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from kvtier_connector.errors import UnsafeFolderError

_STEP: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = _STEP | os.O_DIRECTORY
_MOST_LINKS: Final = 40
"""As the kernel has it (path_resolution(7))."""


def open_parent(path: Path) -> int:
    """Return a descriptor of the folder that holds `path`; folders that are missing on the way are made.

    Raises:
        UnsafeFolderError: a link on the way is another user's, who could have it point anywhere.
        OSError: a step of the way is no folder, or may not be passed or made.
    """
    left = list(reversed(path.absolute().parent.parts))  # begins with the root
    links, at = 0, os.open("/", _FOLDER)
    with ExitStack() as undo:
        undo.callback(lambda: os.close(at))
        while left:
            name = left.pop()
            step = _open_step(at, name)
            if step is None:
                links += 1
                left += reversed(_target(at, name, path, links))
                continue
            os.close(at)
            at = step
        undo.pop_all()
    return at


def _open_step(at: int, name: str) -> int | None:
    """Open a folder, made if it is missing; None for what is no folder and may be a link."""
    try:
        return os.open(name, _FOLDER, dir_fd=at)
    except FileNotFoundError:
        with suppress(FileExistsError):  # made by another just now
            os.mkdir(name, 0o755, dir_fd=at)
        return os.open(name, _FOLDER, dir_fd=at)
    except NotADirectoryError:
        return None


def _target(at: int, name: str, path: Path, links: int) -> tuple[str, ...]:
    """Return the steps that a link stands for."""
    link = os.open(name, _STEP, dir_fd=at)
    try:
        found = os.fstat(link)
        if not stat.S_ISLNK(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        if found.st_uid not in {0, os.geteuid()}:
            raise UnsafeFolderError(
                f"disk_path: on the way to {path}, {name!r} is a link of user {found.st_uid}, who may let it "
                "point anywhere; name the folder itself"
            )
        if links > _MOST_LINKS:
            raise UnsafeFolderError(
                f"disk_path: there are more than {_MOST_LINKS} links on the way to {path}"
            )
        return Path(os.readlink("", dir_fd=link)).parts
    finally:
        os.close(link)
