"""The documentation's pages, and what is written in them for machines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[3]
DOCS: Final = ROOT / "docs"
PAGES: Final = (
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "charts").rglob("*.md")),
)
_ANY_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    """A page's path from the root of the project."""
    return str(page.relative_to(ROOT))


def fenced_blocks(page: Path, language: str) -> list[str]:
    """Blocks of one language, such as `yaml`."""
    return [text for word, text in _FENCE.findall(page.read_text(encoding="utf-8")) if word == language]


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a page.

    Attributes:
        command: As it is typed, comment included.
        shown: Lines that the page shows of its output; `...` stands for any that it leaves out.
    """

    command: str
    shown: tuple[str, ...]


def typed_commands(page: Path) -> list[Typed]:
    """The commands of all `console` blocks, in order."""
    found: list[Typed] = []
    for block in fenced_blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = re.split(r"(?<!\\)\n", part, maxsplit=1)
            found.append(Typed(command, tuple(shown.rstrip("\n").splitlines())))
    return found


def documents(page: Path) -> Iterator[Any]:
    """Every YAML document of a page."""
    for block in fenced_blocks(page, "yaml"):
        yield from yaml.safe_load_all(block)


def rows(page: Path, heading: str) -> Iterator[list[str]]:
    """Cells of table rows below a heading, to the next of its level or above; without tables' headings."""
    level = len(heading.split(" ", 1)[0])
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    section = re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def without_fences(page: Path) -> str:
    """A page's text without its blocks of code."""
    return _ANY_FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Targets of all links."""
    prose = re.sub(r"`[^`]*`", "", without_fences(page))
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def quoted_words(text: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)
