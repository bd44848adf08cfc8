"""Text that fits a terminal."""

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
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


def fold(text: str, columns: int, indent: str = "") -> list[str]:
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
    return "".join(
        character if character.isprintable() else " " if character in _WHITESPACE else "?"
        for character in text
    )


_GAP: Final = "  "
_LEAST_COLUMNS: Final = 8
"""Columns that one that gives way keeps."""


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    text: Collection[str] = (),
    gives_way: str | None = None,
) -> list[str]:
    """Lines of at most so many columns: headings, then a line a row. The first column is text.

    Columns with headings in `text` are aligned to the left, others to the right. Where the columns do not
    suffice, `gives_way` is cut, by default the first.
    """
    lines = [headings, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    flexible = headings.index(gives_way) if gives_way else 0
    others = sum(widths) - widths[flexible] + len(_GAP) * (len(widths) - 1)
    widths[flexible] = min(widths[flexible], max(columns - others, _LEAST_COLUMNS))
    left = [at == 0 or heading in text for at, heading in enumerate(headings)]
    return [cut(_GAP.join(map(_cell, line, widths, left)).rstrip(), columns) for line in lines]


def _cell(text: str, width: int, left: bool) -> str:
    fitting = cut(text, width)
    return fitting.ljust(width) if left else fitting.rjust(width)
