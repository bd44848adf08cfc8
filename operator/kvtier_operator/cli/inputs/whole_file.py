"""Reads a file that the user names, up to the size that any of kvtier's files has."""

from pathlib import Path
from typing import BinaryIO, Final

from kvtier_operator.errors import InvalidInputError, Problem

_MOST_BYTES: Final = 64 << 20


def read_whole(file: BinaryIO, source: str, field: str = "", most_bytes: int = _MOST_BYTES) -> bytes:
    """What is in an open file.

    Raises:
        InvalidInputError: It is longer than any such file.
    """
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        message = (
            f"has more than {most_bytes >> 20} MiB, which nothing that is read here has; name another file"
        )
        raise InvalidInputError(source, Problem(field, message))
    return content


def read_regular(path: Path, field: str, most_bytes: int = _MOST_BYTES) -> bytes:
    """What is in a file on a disk; a pipe or a device could keep a reader waiting for ever.

    Raises:
        InvalidInputError: It cannot be read, is something else, or is longer than any such file.
    """
    try:
        if not path.is_file() and not path.is_dir():
            path.stat()  # says why, where there is nothing
            raise InvalidInputError(
                str(path), Problem(field, "cannot be read: it is a pipe or a device; name a regular file")
            )
        with path.open("rb") as file:
            return read_whole(file, str(path), field, most_bytes)
    except OSError as error:
        raise InvalidInputError(str(path), Problem(field, f"cannot be read: {error.strerror}")) from error
