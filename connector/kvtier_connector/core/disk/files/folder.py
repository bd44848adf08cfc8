"""The tier's folder, which only this user writes to and one engine has at a time, and the files in it.

Whoever can write above the folder may put another in its place, and whoever could write in it may have left
links there. So nothing below it is found by a path, no link is followed, and what was opened is looked at by
its descriptor: there is no moment between the look and the use.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from typing_extensions import Self

from kvtier_connector.errors import DiskError, FolderInUseError, SettingError, UnsafeFolderError

_STEP: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_STEP: Final = _STEP | os.O_DIRECTORY
_MOST_LINKS: Final = 40  # as the kernel has it (path_resolution(7))
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
"""A FIFO in a file's place must not be waited for."""
_KINDS: Final = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}
_LOCK = "lock"
_LONGEST_HOLDER_BYTES = 200


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn every OSError into a DiskError that names `path`."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror or error}") from error


def open_parent(path: Path) -> int:
    """Return a descriptor of the folder that holds `path`; folders that are missing on the way are made.

    Raises UnsafeFolderError: a link on the way is another user's, who could have it point anywhere; OSError:
    a step of the way is no folder, or may not be passed or made.
    """
    left = list(reversed(path.absolute().parent.parts))  # begins with the root
    links, at = 0, os.open("/", _FOLDER_STEP)
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
        return os.open(name, _FOLDER_STEP, dir_fd=at)
    except FileNotFoundError:
        with suppress(FileExistsError):  # made by another just now
            os.mkdir(name, 0o755, dir_fd=at)
        return os.open(name, _FOLDER_STEP, dir_fd=at)
    except NotADirectoryError:
        return None


def _target(at: int, name: str, path: Path, links: int) -> tuple[str, ...]:
    """Return the steps that a link stands for."""
    link = os.open(name, _STEP, dir_fd=at)
    try:
        entry = os.fstat(link)
        if not stat.S_ISLNK(entry.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        if entry.st_uid not in {0, os.geteuid()}:
            raise UnsafeFolderError(
                f"disk_path: on the way to {path}, {name!r} is a link of user {entry.st_uid}, who may let it "
                "point anywhere; name the folder itself"
            )
        if links > _MOST_LINKS:
            raise UnsafeFolderError(
                f"disk_path: there are more than {_MOST_LINKS} links on the way to {path}"
            )
        return Path(os.readlink("", dir_fd=link)).parts
    finally:
        os.close(link)


class Directory:
    """An open folder. What is no plain file or folder of ours alone is refused (UnsafeFolderError)."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder of our own, made with all above it if need be.

        Raises UnsafeFolderError: it is a link, another user's, or everybody may write to it; OSError: it
        cannot be made or opened.
        """
        parent = open_parent(path)
        try:
            return cls(path, _own_folder(parent, path.name, path))
        finally:
            os.close(parent)

    def folder(self, name: str, *, make: bool = True) -> Self:
        """Open a folder below; the same as `open` otherwise."""
        return type(self)(self.path / name, _own_folder(self.descriptor, name, self.path / name, make=make))

    def file(self, name: str, *, make: bool = True) -> int:
        """Open a file of our own to read and write, made if need be; its bytes are left as they are."""
        path = self.path / name
        if make:
            try:
                made = os.open(name, _FILE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.descriptor)
            except FileExistsError:
                pass
            else:
                return _finish(made, path, 0o600)
        try:
            descriptor = os.open(name, _FILE, dir_fd=self.descriptor)
        except OSError:
            _check_kind(self.descriptor, name, path, stat.S_IFREG)
            raise
        return _finish(descriptor, path)

    def read(self, name: str, most_bytes: int) -> bytes:
        """Return what a file of our own begins with; nothing where there is none."""
        try:
            descriptor = self.file(name, make=False)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most_bytes)

    def write(self, name: str, content: bytes) -> None:
        """Replace a file's content in place."""
        with os.fdopen(self.file(name), "wb") as file:
            os.ftruncate(file.fileno(), 0)
            file.write(content)

    def names(self) -> list[str]:
        """Return what lies in it."""
        return os.listdir(self.descriptor)  # noqa: PTH208 - not a path

    def look(self, name: str) -> os.stat_result:
        """Return what is known of one thing in it, and not of what that may point to."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def rename(self, name: str, to: str) -> None:
        """Give a file another's name, and so take that other's place."""
        os.replace(name, to, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all that is in it, following no link."""
        shutil.rmtree(f"/proc/self/fd/{self.descriptor}/{name}")  # Python 3.10 takes no descriptor for this

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)


def _own_folder(parent: int, name: str, path: Path, *, make: bool = True) -> int:
    mode = None
    if make:
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
            mode = 0o700
        except FileExistsError:
            pass
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        _check_kind(parent, name, path, stat.S_IFDIR)
        raise
    return _finish(descriptor, path, mode)


def _finish(descriptor: int, path: Path, mode: int | None = None) -> int:
    """Return a descriptor that was found to be ours; `mode` is of what was made, whatever the umask."""
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        _check(descriptor, path)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(descriptor: int, path: Path) -> None:
    status, user = os.fstat(descriptor), os.geteuid()
    kind = stat.S_IFMT(status.st_mode)
    mode = stat.S_IMODE(status.st_mode)
    if kind not in {stat.S_IFDIR, stat.S_IFREG}:
        raise UnsafeFolderError(_foreign_text(path, _KINDS.get(kind, "no file")))
    is_folder = kind == stat.S_IFDIR
    if not is_folder and status.st_nlink > 1:
        raise UnsafeFolderError(_foreign_text(path, f"a file of {status.st_nlink} names"))
    if status.st_uid != user:
        raise UnsafeFolderError(
            f"disk_path: {path} belongs to user {status.st_uid} and the engine is user {user}: "
            + (f"chown -R {user} {path}, or " if is_folder else f"rm {path}, or ")
            + f"name a folder that the tier makes for itself, such as {_another(path, is_folder=is_folder)}"
        )
    if mode & stat.S_IWOTH:
        raise UnsafeFolderError(
            f"disk_path: every user may write to {path} (mode {mode:04o}), so that what lies there may be "
            f"anybody's: empty it and chmod {700 if is_folder else 600} {path}, or name a folder that the "
            f"tier makes for itself, such as {_another(path, is_folder=is_folder)}"
        )
    # The kubelet gives a volume's group (fsGroup) all that is in it, and a copy may be for all to read.
    # Nobody else needs any of it, and who can open the lock can hold it.
    own = mode & (stat.S_IRWXU if is_folder else stat.S_IRUSR | stat.S_IWUSR)
    if mode != own:
        os.fchmod(descriptor, own)


def _another(path: Path, *, is_folder: bool) -> Path:
    return path / "kvtier" if is_folder else path.parent / "kvtier"


def _check_kind(parent: int, name: str, path: Path, wanted: int) -> None:
    """Say what is in the place of something that could not be opened, unless that is of the wanted kind."""
    kind = stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    if kind == wanted:
        return
    if wanted == stat.S_IFDIR:
        raise SettingError(f"disk_path: {path} is {_KINDS[kind]}; name a folder")
    raise UnsafeFolderError(_foreign_text(path, _KINDS[kind]))


def _foreign_text(path: Path, what: str) -> str:
    return (
        f"disk_path: {path} is {what}, which the tier did not make: see who else writes there, then rm -r "
        f"{path}"
    )


class LockedFolder:
    """A folder that nobody else has until `close`, or until this process ends in whatever way."""

    def __init__(self, directory: Directory, descriptor: int) -> None:
        self.directory = directory
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, holder: str) -> Self:
        """Make the folder if need be, and lock it.

        Raises SettingError: a file is in its place, or it may not be written; the message says which;
        UnsafeFolderError: it, or its lock, may be another user's; FolderInUseError: another engine has it;
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

        Raises DiskError: it has been deleted or replaced, so that nobody will find what is written to it.
        """
        path = self.directory.path
        with disk_errors(path):
            # By its path, as the next engine will look for it; nothing is opened.
            now, taken = (path / _LOCK).lstat(), os.fstat(self._descriptor)
            if (now.st_dev, now.st_ino) != (taken.st_dev, taken.st_ino):
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
