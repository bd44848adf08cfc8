"""Where tables and progress are shown: rich's console, on which no text of others is markup or a command."""

from collections.abc import Iterator
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from kvtier_common.one_line import visible


class PlainConsole(Console):
    """Styles what it is told to by rich's own types, and nothing for what stands in a text."""

    def __init__(
        self,
        *,
        stderr: bool = False,
        soft_wrap: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__(
            stderr=stderr,
            soft_wrap=soft_wrap,
            file=file,
            width=width,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What everything is printed by, tables and live views too."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = map(visible, segment.text.split("\n"))
                yield Segment("\n".join(lines), segment.style)
