"""Files, folders and lines that the pages for developers name are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.docs.pages import DOCS, ROOT, fenced, name, quoted

PAGES = [DOCS / "development" / f"{page}.md" for page in ("walks", "architecture", "connector")]
ROOTS = [
    ROOT,
    *(ROOT / package for package in ("operator", "connector", "scorer")),
    *(ROOT / "operator" / "kvtier_operator" / inner for inner in ("", "reconcile")),
    ROOT / "connector" / "kvtier_connector",
    ROOT / "scorer" / "kvtier_scorer",
]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)+/?|[\w*-]+\.(py|md|yaml|toml)|[\w-]+/")
_NO_PATH = re.compile(r"[A-Z]\w*/|/(metrics|proc|dev|sys)|\.(dev|io|com)/|v\d+/|.*=")


def paths(page: Path) -> Iterator[str]:
    """What stands in backquotes of a page's prose and is a path."""
    for text in quoted(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if _PATH.fullmatch(text) and not _NO_PATH.search(text):
            yield text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_lead_somewhere(page: Path) -> None:
    lost = [path for path in paths(page) if not any(next(root.glob(path), None) for root in ROOTS)]
    assert not lost


def test_each_walk_ends_at_a_line_of_its_last_file() -> None:
    [walks, *_] = PAGES
    _, *parts = re.split(r"^## ", walks.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = fenced(walks, "python")
    assert len(parts) == len(lines) == 3
    for part, line in zip(parts, lines, strict=True):
        last = [path for path in quoted(part) if path.endswith(".py")][-1]
        assert line.strip() in (ROOT / last).read_text(encoding="utf-8")
