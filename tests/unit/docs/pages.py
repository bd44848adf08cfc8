"""The documentation's pages, and what is written in them for machines."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[3]
DOCS: Final = ROOT / "docs"
PAGES: Final = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "charts").rglob("*.md")))
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    """A page's path from the root of the project."""
    return str(page.relative_to(ROOT))


def fenced(page: Path, language: str) -> list[str]:
    """Blocks of one language, such as `yaml`."""
    return [text for found, text in _FENCE.findall(page.read_text(encoding="utf-8")) if found == language]


def documents(page: Path) -> Iterator[Any]:
    """Every YAML document of a page."""
    for block in fenced(page, "yaml"):
        yield from yaml.safe_load_all(block)


def rows(page: Path, heading: str) -> Iterator[list[str]]:
    """Cells of every table row under a heading, down to the next of its level; without tables' headings."""
    level = heading.split(" ", 1)[0]
    _, _, rest = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    section = re.split(rf"^{level} ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def links(page: Path) -> list[str]:
    """Targets of all links."""
    prose = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def quoted(text: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)
