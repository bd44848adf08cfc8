"""Each flavour is one module; nothing else names it, but asks what is true of it."""

import re
from pathlib import Path

import pytest

import kvtier_operator
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.traits import FlavorTraits

PACKAGE = Path(*kvtier_operator.__path__)
TOLD = {"api/spec/router.py"}
"""Files that name flavours, beside their own: the API's rules."""


@pytest.mark.parametrize("flavor", Flavor)
def test_has_traits(flavor: Flavor) -> None:
    assert isinstance(flavor_traits(flavor), FlavorTraits)


def test_no_other_file_names_one() -> None:
    named_one = re.compile(rf"\bFlavor\.[A-Z]|([\"'])({'|'.join(Flavor)})\1")
    files = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")
    }
    found = {path for path, text in files.items() if named_one.search(text)}
    assert {path for path in found if not path.startswith("planning/flavors/")} == TOLD
