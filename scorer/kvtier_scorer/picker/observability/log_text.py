"""Text of clients made fit for one line of a log, and errors without what clients sent."""

from pathlib import Path
from traceback import extract_tb
from typing import Final

_MOST: Final = 64
_DELETE: Final = 0x7F


def printable(text: str) -> str:
    """The text in visible ASCII, and not more than 64 characters of it.

    A client's identifiers may hold line breaks, which forge lines, or a terminal's own commands.
    """
    shown = "".join(
        each if " " < each < chr(_DELETE) and each != "\\" else each.encode("unicode_escape").decode()
        for each in text[:_MOST].encode(errors="replace").decode()
    ).replace(" ", "\\x20")
    return shown if len(text) <= _MOST else shown + "..."


def error_location(error: BaseException) -> str:
    """The class of an error and the line that raised it, without its message, which may quote a body."""
    frames = extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    last = frames[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"
