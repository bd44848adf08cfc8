"""Tests that share the machine's one pool of huge pages run on one worker, wherever their files are moved."""

from pathlib import Path

from tests.shared.hugepages import hugepage_pool
from tests.workers import OF_THE_MACHINE

_CHECKOUT = Path(__file__).parents[2]


def test_whoever_sets_the_pool_is_with_the_others_that_do() -> None:
    files = [
        path.relative_to(_CHECKOUT) for path in _CHECKOUT.glob("tests/**/test_*.py") if path != Path(__file__)
    ]
    sets_it = [str(file) for file in files if hugepage_pool.__name__ in (_CHECKOUT / file).read_text("utf-8")]
    assert len(sets_it) > 1
    assert [each for each in sets_it if not each.startswith(OF_THE_MACHINE)] == []


def test_what_is_given_to_one_worker_is_there() -> None:
    assert [each for each in OF_THE_MACHINE if not (_CHECKOUT / each).exists()] == []
