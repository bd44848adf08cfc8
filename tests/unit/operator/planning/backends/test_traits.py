"""Each backend is one module; nothing else names it, but asks what is true of it."""

import re
from pathlib import Path

import pytest

import kvtier_operator
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.backends import any_backend_that, traits_of
from kvtier_operator.planning.backends.traits import BackendTraits

PACKAGE = Path(*kvtier_operator.__path__)
TOLD = {"api/spec/tiers/__init__.py", "cli/connector_args.py", "generate/pages.py"}
"""Files that name backends, beside their own: the enum, what is refused for a plain vLLM, the matrix."""


@pytest.mark.parametrize("backend", Backend)
def test_has_traits(backend: Backend) -> None:
    assert isinstance(traits_of(backend), BackendTraits)


def test_advice_names_those_of_which_something_is_true() -> None:
    assert any_backend_that(lambda traits: traits.tells_adapters_apart) == "KVTier or Native"
    assert any_backend_that(lambda traits: traits.bench_side == "kvtier") == "KVTier"


def test_no_other_file_names_one() -> None:
    # the name of a project is not only its backend's
    names = {each.value for each in Backend} - {traits_of(each).project for each in Backend}
    named_one = re.compile(rf"\bBackend\.[A-Z]|\b({'|'.join(names)})\b")
    files = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")
    }
    found = {path for path, text in files.items() if named_one.search(text)}
    assert {path for path in found if not path.startswith("planning/backends/")} == TOLD
