"""Words of a command line that a shell takes for what they are, and that command no terminal."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

_ASCII: Final = 0x80
_SHORT: Final = 0x10000


def shell_line(argv: Iterable[str], env: Mapping[str, str]) -> str:
    """A command as a person would type it, on one line."""
    variables = (f"{name}={shell_word(value)}" for name, value in env.items())
    return " ".join((*variables, *map(shell_word, argv)))


def shell_word(text: str) -> str:
    """One word; what cannot be printed is escaped as bash, zsh and ksh read it, within $'...'."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < _ASCII else f"\\u{code:04x}" if code < _SHORT else f"\\U{code:08x}"
