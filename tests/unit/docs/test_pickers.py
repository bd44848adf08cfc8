"""What docs/reference/pickers.md says is so: which versions the tests run, and which paths pass."""

import re

import pytest
from tests.unit.docs.pages import DOCS, ROOT, quoted_words, rows

from kvtier_operator.planning.router.engine_routes import passed_paths

_REQUIRED = re.compile(r"^\s*sigs\.k8s\.io/gateway-api-inference-extension v(\S+)", re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("SUPPORT.md", "| Gateway API inference extension, flavor gaie |"),
        ("docs/reference/pickers.md", "| `gaie` | the Gateway API inference extension's |"),
    ],
)
def test_of_the_inference_extension(page: str, row: str) -> None:
    run = {
        version
        for file in ROOT.glob("tests/tools/picker*/go.mod")
        for version in _REQUIRED.findall(file.read_text(encoding="utf-8"))
    }
    [line] = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith(row)]
    assert {*re.findall(r"\d+\.\d+\.\d+", line)} == run


def test_the_paths_that_pass() -> None:
    said = [quoted_words(row[1]) for row in rows(DOCS / "reference" / "pickers.md", "### Which paths pass")]
    assert sorted(path for paths in said for path in paths) == sorted(passed_paths())
