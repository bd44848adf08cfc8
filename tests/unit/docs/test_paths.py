"""Files, folders and lines of the packages that pages name are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.docs.pages import DOCS, PAGES, ROOT, fenced_blocks, name, quoted_words, without_fences

FOR_DEVELOPERS = [DOCS / "development" / f"{page}.md" for page in ("walks", "architecture", "connector")]
ROOTS = [
    ROOT,
    *(ROOT / package for package in ("operator", "connector", "scorer")),
    *(ROOT / "operator" / "kvtier_operator" / inner for inner in ("", "reconcile")),
    ROOT / "connector" / "kvtier_connector",
    ROOT / "scorer" / "kvtier_scorer",
]
_PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)+/?|[\w*-]+\.(py|md|yaml|toml)|[\w-]+/")
_OURS = re.compile(r"(api|planning|operator|connector|scorer|tests)/")
_NO_PATH = re.compile(r"[A-Z]\w*/|/(metrics|proc|dev|sys)|\.(dev|io|com)/|v\d+/|.*=")


def paths(page: Path) -> Iterator[str]:
    """What stands in backquotes of a page's prose and is a path."""
    for text in quoted_words(without_fences(page)):
        if _PATH.fullmatch(text) and not _NO_PATH.search(text):
            yield text


def is_there(path: str) -> bool:
    """Whether a path, or a pattern of paths, leads from one of the roots to a file or a folder with files."""
    return any(holds_files(there) for root in ROOTS for there in root.glob(path))


def holds_files(path: Path) -> bool:
    """Whether there are files: what Python compiled stays behind when they have moved."""
    return path.is_file() or any(below.is_file() and below.suffix != ".pyc" for below in path.rglob("*"))


@pytest.mark.parametrize("page", FOR_DEVELOPERS, ids=name)
def test_paths_lead_somewhere(page: Path) -> None:
    assert [path for path in paths(page) if not is_there(path)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "adr" not in page.parts], ids=name)
def test_paths_of_the_packages_lead_somewhere(page: Path) -> None:
    assert [path for path in paths(page) if _OURS.match(path) and not is_there(path)] == []


def test_a_path_to_nothing_is_found() -> None:
    assert is_there("planning/plan.py")
    assert is_there("kvtier_operator/planning/*/engine/")
    assert not is_there("planning/nothing.py")
    assert not is_there("nothing/")


def test_each_walk_ends_at_a_line_of_its_last_file() -> None:
    [walks, *_] = FOR_DEVELOPERS
    _, *parts = re.split(r"^## ", walks.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = fenced_blocks(walks, "python")
    assert len(parts) == len(lines) == 3
    for part, line in zip(parts, lines, strict=True):
        last = [path for path in quoted_words(part) if path.endswith(".py")][-1]
        assert line.strip() in (ROOT / last).read_text(encoding="utf-8")
