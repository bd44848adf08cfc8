"""Rows of text in columns that fit a terminal."""

from collections.abc import Collection, Sequence
from typing import Final

from kvtier_operator.cli.text.terminal import cut

_GAP: Final = "  "
_LEAST: Final = 8
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

    Args:
        headings: One a column.
        rows: Cells, as many as there are headings.
        columns: Of the terminal.
        text: Headings of the other columns that are aligned to the left; figures are to the right.
        gives_way: Heading of the column that is cut where there is too little room; by default the first.
    """
    lines = [headings, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headings))]
    flexible = headings.index(gives_way) if gives_way else 0
    others = sum(widths) - widths[flexible] + len(_GAP) * (len(widths) - 1)
    widths[flexible] = min(widths[flexible], max(columns - others, _LEAST))
    left = [at == 0 or heading in text for at, heading in enumerate(headings)]
    return [cut(_GAP.join(map(_cell, line, widths, left)).rstrip(), columns) for line in lines]


def _cell(text: str, width: int, left: bool) -> str:
    fitting = cut(text, width)
    return fitting.ljust(width) if left else fitting.rjust(width)
