"""A line of what others wrote, for conditions, logs and terminals."""

from typing import Final

_MOST_READ: Final = 16
"""Characters that are looked at, for each that is kept: whitespace between words may be long."""


def one_line(text: str, most_characters: int) -> str:
    """The text on one line: one space between words, `?` for what cannot be printed, cut where it is long.

    A line break would forge another line, an escape sequence command the terminal of who reads it.
    """
    words = " ".join(text[: most_characters * _MOST_READ].split())
    shown = "".join(each if each.isprintable() else "?" for each in words[:most_characters])
    return shown if len(words) <= most_characters else f"{shown} ..."
