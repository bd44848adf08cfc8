"""Settings of the site that `make docs` builds of these pages (ADR 0033)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docutils import nodes

from kvtier_common.version import KVTIER_VERSION, PAGES_URL, REPOSITORY_URL

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "kvtier"
html_title = f"kvtier {KVTIER_VERSION}"
html_baseurl = f"{PAGES_URL}/"
html_theme = "furo"
html_theme_options = {
    "source_view_link": f"{REPOSITORY_URL}/blob/main/docs/{{filename}}",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_js_files = ["copy.js"]
extensions = ["myst_parser"]
root_doc = "index"
# headings of all levels can be linked to, as on a forge
myst_heading_anchors = 6
highlight_language = "text"
# PromQL, and examples with `...` in them, are shown without colours
suppress_warnings = ["misc.highlighting_failure"]

_LISTS: Final = ("index", "development/adr/README")
"""Pages whose links are the tree of pages, in their order and under their headings."""
_FENCE: Final = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_ITEM: Final = re.compile(r"^- \[[^]]*\]\(([^)\s]+)\)", re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
_BREAKS: Final = re.compile(r"(?<=[./_=()\]:,&|-])(?=\w)|(?<=[a-z])(?=[A-Z])")
"""Where a long name in a table may go on in the next line."""


def setup(app: "Sphinx") -> None:
    """Called by Sphinx: pages stay as a forge shows them, and become the site's as they are read."""
    app.connect("source-read", _read)
    app.connect("doctree-resolved", _lay_out)


def _read(app: "Sphinx", page: str, text: list[str]) -> None:
    links_out = _links_to_sources(text[0], Path(app.srcdir) / page)
    text[0] = links_out + _trees(text[0]) if page in _LISTS else links_out


def _lay_out(_app: "Sphinx", tree: nodes.document, _page: str) -> None:
    for entry in tree.findall(nodes.entry):
        for name in [*entry.findall(nodes.literal)]:
            name.children = [*_with_breaks(name.astext())]
    for block in tree.findall(nodes.literal_block):
        if block.get("language") == "console" and _is_typed(block.astext()):
            block["classes"].append("typed")


def _with_breaks(text: str) -> Iterator[nodes.Node]:
    first, *rest = _BREAKS.split(text)
    yield nodes.Text(first)
    for part in rest:
        yield nodes.raw("", "<wbr>", format="html")
        yield nodes.Text(part)


def _is_typed(text: str) -> bool:
    """Whether a block has commands alone, which may be wrapped; output is laid out in columns."""
    return all(line.startswith(("$", "    ")) for line in text.splitlines() if line)


def _links_to_sources(text: str, page: Path) -> str:
    """Links out of docs/ lead to the repository; one to nothing stays, and is found as any other."""
    return "".join(
        part if part.startswith("```") else _LINK.sub(lambda found: _link(found[1], page), part)
        for part in _FENCE.split(text)
    )


def _link(target: str, page: Path) -> str:
    path, mark, anchor = target.partition("#")
    found = Path(os.path.normpath(page.parent / path))
    root = Path(__file__).parents[1]
    is_source = path and "://" not in target and found.exists() and not found.is_relative_to(root / "docs")
    if not is_source or not found.is_relative_to(root):
        return f"]({target})"
    kind = "tree" if found.is_dir() else "blob"
    return f"]({REPOSITORY_URL}/{kind}/main/{found.relative_to(root)}{mark}{anchor})"


def _trees(text: str) -> str:
    """What a list of pages links to, as hidden tables of contents, one a heading."""
    _, *parts = _HEADING.split(text)
    return "".join(
        "\n\n```{toctree}\n:hidden:\n:caption: " + heading + "\n\n" + "\n".join(pages) + "\n```\n"
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
        if (pages := [*_pages(body)])
    )


def _pages(text: str) -> Iterator[str]:
    for target in _ITEM.findall(text):
        if target.endswith(".md") and not target.startswith("../"):
            yield target.removesuffix(".md")
