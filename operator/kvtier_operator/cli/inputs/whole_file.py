"""Reads a file that the user names, up to the size that any of kvtier's files has."""

from pathlib import Path
from typing import BinaryIO, Final

from kvtier_operator.errors import InvalidInputError, Problem

_MOST_BYTES: Final = 64 << 20


def read_whole(file: BinaryIO, source: str, field: str = "") -> bytes:
    """What is in an open file.

    Raises:
        InvalidInputError: It is longer than any such file.
    """
    content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        message = (
            f"has more than {_MOST_BYTES >> 20} MiB, which nothing that kvtier reads has; name another file"
        )
        raise InvalidInputError(source, Problem(field, message))
    return content


def read_regular(path: Path, field: str) -> bytes:
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
            return read_whole(file, str(path), field)
    except OSError as error:
        raise InvalidInputError(str(path), Problem(field, f"cannot be read: {error.strerror}")) from error
