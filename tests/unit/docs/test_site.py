"""`make docs`: the pages build without a warning, and what leads nowhere is one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.docs.pages import DOCS, ROOT

from kvtier_common.version import REPOSITORY_URL

INDEX = "# Pages\n\n## Start\n\n- [One](one.md)\n"


def build(pages: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """As the Makefile does it."""
    options = ["--fail-on-warning", "--fresh-env", "--quiet", "--conf-dir", str(DOCS)]
    kept = ["--doctree-dir", str(site.parent / "doctrees")]
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "sphinx", "--builder", "html", *options, *kept, str(pages), str(site)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("docs") / "site"
    done = build(DOCS, built)
    assert (done.returncode, done.stderr) == (0, "")
    return built


def test_the_makefile_builds_it_as_this_does() -> None:
    [line] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m sphinx" in line]
    assert "--fail-on-warning --fresh-env" in line


def test_every_page_is_there(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).is_file()} == set()


def test_a_page_has_one_name() -> None:
    """What the index calls it is what its navigation, which has titles, calls it."""
    lists = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## ")[2]
    for name, page in re.findall(r"^- \[(.*?)\]\((.*?)\)", lists, re.MULTILINE):
        assert f"\n# {name}\n" in "\n" + (DOCS / page).read_text(encoding="utf-8")


def test_the_navigation_has_the_headings_of_the_index(site: Path) -> None:
    headings = re.findall(r"^## (.*)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    text = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'class="caption-text">(.*?)<', text) == headings


def test_long_names_in_tables_may_break_and_commands_may_wrap(site: Path) -> None:
    text = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert '<span class="pre">spec.</span><wbr><span class="pre">model.</span><wbr>' in text
    page = (site / "user-guide" / "run" / "plain-vllm.html").read_text(encoding="utf-8")
    assert page.count('class="typed highlight-console') == 1


def test_a_link_to_a_source_leads_to_the_repository(site: Path) -> None:
    text = (site / "user-guide" / "start" / "install.html").read_text(encoding="utf-8")
    assert f'href="{REPOSITORY_URL}/blob/main/charts/tiered-prefix-cache/README.md"' in text


def test_the_anchor_of_an_alert_is_its_name(site: Path) -> None:
    text = (site / "operations" / "alerts.html").read_text(encoding="utf-8")
    assert 'id="kvcachetiernoengine"' in text


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    loaded = [line for line in text.splitlines() if "<script" in line or "<link" in line or "<img" in line]
    assert loaded
    assert [
        line for line in loaded if "//" in line.replace(f"{REPOSITORY_URL}/", "") and "canonical" not in line
    ] == []


def test_what_leads_nowhere_and_a_page_that_no_list_names_are_errors(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    pages.mkdir()
    gone = ("[a](page.md)", "[a](index.md#anchor)", "[a](../source.py)", "![a](image.svg)")
    for page, text in {"index": INDEX, "one": "\n\n".join(["# One", *gone]), "two": "# Two\n"}.items():
        (pages / f"{page}.md").write_text(text)
    done = build(pages, tmp_path / "site")
    assert done.returncode != 0
    for name in ("page.md", "anchor", "source.py", "image.svg", "two.md"):
        assert name in done.stderr
    assert len(done.stderr.splitlines()) >= 5
