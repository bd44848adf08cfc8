"""Versions of pickers that pages call tested are those that the tests run."""

import re

import pytest
from tests.unit.docs.pages import ROOT

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
    [line] = [each for each in (ROOT / page).read_text(encoding="utf-8").splitlines() if each.startswith(row)]
    assert {*re.findall(r"\d+\.\d+\.\d+", line)} == run
