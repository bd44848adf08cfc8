"""Links of pages lead somewhere: to a file or a folder of the project, and there to a heading."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.docs.pages import DOCS, PAGES, ROOT, links, name, without_fences

PAGE = DOCS / "development" / "walks.md"


def lost(targets: list[str], page: Path) -> Iterator[str]:
    """Those of a page's links that lead nowhere; of other sites' none."""
    for target in targets:
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if "://" not in target and not (_is_there(found, path) and (not anchor or anchor in _slugs(found))):
            yield target


def _is_there(found: Path, path: str) -> bool:
    is_named = found.is_dir() if path.endswith("/") else found.exists()
    return is_named and found.is_relative_to(ROOT)


def _slugs(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them; none of what is no page."""
    text = without_fences(page) if page.suffix == ".md" else ""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [*lost(links(page), page)] == []


@pytest.mark.parametrize(
    "target",
    [
        "glossary.md",
        "adr/",
        "../images/data-flow.svg",
        "../../README.md#a-first-plan",
        "../../operator/kvtier_operator/planning",
        "../../operator/kvtier_operator/planning/",
        "../../operator/kvtier_operator/planning/plan.py",
        "#where-a-score-is-weighed",
        "https://example.com/nothing#at-all",
    ],
)
def test_a_link_to_what_is_there_is_kept(target: str) -> None:
    assert [*lost([target], PAGE)] == []


@pytest.mark.parametrize(
    "target",
    [
        "nothing.md",
        "nothing/",
        "glossary.md/",
        "../../operator/kvtier_operator/planning/nothing.py",
        "../../operator/kvtier_operator/nothing/",
        "../../..",
        "#nothing",
        "glossary.md#nothing",
        "../../README.md#nothing",
        "../../operator/kvtier_operator/planning/plan.py#nothing",
        "../../operator/kvtier_operator/planning/#nothing",
    ],
)
def test_a_link_to_what_is_not_there_is_found(target: str) -> None:
    assert [*lost([target], PAGE)] == [target]


def test_a_line_of_code_is_no_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n\n```console\n# a comment\n```\n", encoding="utf-8")
    assert _slugs(page) == {"a-heading"}


def test_links_are_found_beside_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[`one`](one.md) `[two](two.md)` ![three](three.svg)\n\n```\n[four](four.md)\n```\n")
    assert links(page) == ["one.md", "three.svg"]
