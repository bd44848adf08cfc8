"""How wide a terminal is, and text that fits it."""

import os
import shutil
import sys
import textwrap
from typing import Final

_COLUMNS: Final = 100
"""Where nothing tells: of a file or a pipe."""
_LEAST: Final = 40
"""Narrower than that nothing is laid out."""
_WHITESPACE: Final = "\t\n\r"


def terminal_columns() -> int:
    """Columns of the terminal, or what COLUMNS says."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return _COLUMNS
    return max(shutil.get_terminal_size((_COLUMNS, 0)).columns, _LEAST)


def folded(text: str, columns: int, indent: str = "") -> list[str]:
    """A paragraph as lines of at most so many columns, each with the indent; a longer word is broken."""
    return textwrap.wrap(
        _visible(text), columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def cut(text: str, columns: int) -> str:
    """What fits so many columns; an ellipsis says that there is more."""
    shown = _visible(text)
    return shown if len(shown) <= columns else f"{shown[: max(columns - 1, 0)]}…"


def _visible(text: str) -> str:
    """Character for character: what others wrote into a cluster must not command the terminal."""
    return "".join(each if each.isprintable() else " " if each in _WHITESPACE else "?" for each in text)
