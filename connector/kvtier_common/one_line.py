"""What others wrote, made fit for conditions, logs, terminals and shells."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

_MOST_READ: Final = 16
"""Characters that are looked at, for each that is kept: whitespace between words may be long."""
_WHITESPACE: Final = "\t\n\r"
_ASCII: Final = 0x80
_SHORT: Final = 0x10000


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
    return "".join(
        character if character.isprintable() else " " if character in _WHITESPACE else "?"
        for character in text
    )


def shell_line(argv: Iterable[str], env: Mapping[str, str]) -> str:
    """A command as a person would type it, on one line."""
    variables = (f"{name}={shell_word(value)}" for name, value in env.items())
    return " ".join((*variables, *map(shell_word, argv)))


def shell_word(text: str) -> str:
    """One word; what cannot be printed is escaped as bash, zsh and ksh read it, within $'...'."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escape, text))}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < _ASCII else f"\\u{code:04x}" if code < _SHORT else f"\\U{code:08x}"
