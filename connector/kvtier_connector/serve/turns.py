"""Of several API servers of one engine one does the work; the others see how far it is."""

import fcntl
import multiprocessing
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object

_START_TIME: Final = 19  # field 22 of /proc/PID/stat, counted behind the name in parentheses
_MOST_BYTES: Final = 4096


class Turn:
    """Whose turn it is, by a lock that ends with its process. Without a file it is always this one's."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = -1
        self._is_taken = False
        if path is not None:
            try:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                if os.fstat(self._file).st_uid != os.geteuid():
                    self.close()
            except OSError:
                self._file = -1

    def take(self) -> bool:
        """Whether it is this process's turn, from now on until it ends."""
        if self._file < 0:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._is_taken = True
        return True

    def tell(self, text: str) -> None:
        """Say how far it is, if it is this process's turn."""
        if self._file >= 0:
            with suppress(OSError):  # a full file system: the others then open when their own time is over
                os.pwrite(self._file, text.encode().ljust(_MOST_BYTES), 0)

    def heard(self) -> dict[str, int]:
        """Return the numbers that the one whose turn it is has said last."""
        if self._file < 0:
            return {}
        try:
            said = parse_json_object(os.pread(self._file, _MOST_BYTES, 0))
        except (OSError, MalformedError):
            return {}
        return {name: number for name, number in said.items() if isinstance(number, int)}

    def close(self) -> None:
        """Let go of the turn."""
        if self._is_taken and self._path is not None:
            self._path.unlink(missing_ok=True)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def turn_of_server(port: int, folder: str = "") -> Turn:
    """Return the turn among the API servers that one `vllm serve` has started; one alone has its own."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return Turn(None)
    where = _writable(folder)
    if where is None:  # each computes the prefixes, and finds what another has computed
        return Turn(None)
    return Turn(where / f"kvtier-prefixes-{parent.pid}-{_started(parent.pid)}-{port}.lock")


def _writable(folder: str) -> Path | None:
    """Return this folder or the system's temporary one, whichever can be written first; None for neither."""
    if folder and os.access(folder, os.W_OK):
        return Path(folder)
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # the file system is read-only
        return None


def _started(pid: int) -> str:
    """Return when a process started, which tells it from earlier ones of its number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "0"
    return stat.rpartition(")")[2].split()[_START_TIME]
