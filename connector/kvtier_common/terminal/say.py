"""The one place through which commands print, but for tables: those go through `console.py` beside it."""

import json
import os
import re
import secrets
import sys
from typing import Final

import click

from kvtier_common.one_line import visible

MOST_COMPLAINTS: Final = 100  # lines of one error
_MOST_CHARACTERS: Final = 2000
"""Of a line; what is to be read whole, by a program or a shell, is said by `say_whole`."""
_KEY: Final = secrets.token_hex(8)
_STYLE: Final = re.compile(rf"\x02{_KEY}([0-9]+)\x03")
_NOT_PRINTABLE: Final = re.compile(r"[^\n\x20-\x7e]")


def in_style(text: str, sgr: str) -> str:
    """Text in a style, which only `style_text` makes out of it: what others wrote cannot forge it.

    The text has no line breaks; `sgr` is the style's parameter (ECMA-48, 8.3.117), such as `31` for red.
    """
    return f"\x02{_KEY}{sgr}\x03{text}\x02{_KEY}0\x03"


def style_text(text: str, *, colour: bool) -> str:
    """Text for a terminal: nothing in it is a command but line breaks, and the styles of `in_style`."""
    return "\n".join(_styled_line(line, colour=colour) for line in text.split("\n"))


def say(text: str, *, err: bool = False, end: str = "\n", colour: bool = False) -> None:
    """Print for people: lines that are too long are cut."""
    lines = (_cut(line) for line in text.split("\n"))
    click.echo(style_text("\n".join(lines), colour=colour) + end, err=err, nl=False, color=colour)


def say_whole(text: str, *, end: str = "\n") -> None:
    """Print what is escaped already, such as YAML or a line for a shell, as long as it is."""
    click.echo(style_text(text, colour=False) + end, nl=False)


def say_row(*cells: str) -> None:
    """Print cells between tabs, for a program."""
    click.echo("\t".join(visible(cell) for cell in cells))


def say_json(value: object) -> None:
    """Print a document for programs; text that cannot be printed is escaped."""
    click.echo(json_document(value))


def json_document(value: object) -> str:
    """JSON that people can read too, and that commands no terminal."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(_escape, text)


def complain(text: str) -> None:
    """Print an error to standard error: a line each, and not too many of them."""
    lines = text.rstrip("\n").split("\n")
    more = [f"and {len(lines) - MOST_COMPLAINTS:,} lines more"] if len(lines) > MOST_COMPLAINTS else []
    say("\n".join([*lines[:MOST_COMPLAINTS], *more]), err=True)


def wants_colour() -> bool:
    """Whether standard output is a terminal whose owner did not say NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _cut(line: str) -> str:
    if len(line) <= _MOST_CHARACTERS:
        return line
    plain = _STYLE.sub("", line)
    return plain if len(plain) <= _MOST_CHARACTERS else f"{plain[:_MOST_CHARACTERS]} ..."


def _styled_line(line: str, *, colour: bool) -> str:
    pieces = _STYLE.split(line)
    texts, styles = map(visible, pieces[::2]), [f"\x1b[{sgr}m" if colour else "" for sgr in pieces[1::2]]
    return "".join(piece for pair in zip(texts, [*styles, ""], strict=True) for piece in pair)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]
