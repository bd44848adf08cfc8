"""What others wrote, made fit for conditions, logs and terminals."""

from typing import Final

_MOST_READ: Final = 16
"""Characters that are looked at, for each that is kept: whitespace between words may be long."""
_WHITESPACE: Final = "\t\n\r"


def one_line(text: str, most_characters: int) -> str:
    """The text on one line: one space between words, `?` for what cannot be printed, cut where it is long.

    A line break would forge another line, an escape sequence command the terminal of who reads it.
    """
    words = " ".join(text[: most_characters * _MOST_READ].split())
    shown = visible(words[:most_characters])
    return shown if len(words) <= most_characters else f"{shown} ..."


def visible(text: str) -> str:
    """The same character for character: a space for each that breaks lines, `?` for others not printable."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " if each in _WHITESPACE else "?" for each in text)
