"""Which piece comes next: the most important one that there is time for."""

from typing import Any

import pytest
from tests.bench.card.budget import Budget, Piece, choose, left_out

COPIES = Piece("copies", "", 0, 40)
LIVES = tuple(Piece("life", side, 1, 90) for side in ("kvtier", "vllm", "none"))
KIND = Piece("kind", "mla", 0, 50)
PIECES = (COPIES, *LIVES, KIND)
PLENTY = Budget(10_000, 10_000)


def measured(seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "figures": {}}


def names(done: dict[str, Any], budget: Budget, called_s: float = 0) -> tuple[str | None, int]:
    choice = choose(PIECES, done, budget, called_s)
    return (choice.piece.name if choice.piece else None), choice.left


def test_a_piece_is_called_what_its_file_is() -> None:
    assert [piece.name for piece in PIECES] == [
        "copies",
        "life.kvtier.1",
        "life.vllm.1",
        "life.none.1",
        "kind.mla",
    ]


def test_the_most_important_that_is_not_done_comes_next() -> None:
    assert names({}, PLENTY) == ("copies", 5)
    assert names({"copies": measured(30), "life.vllm.1": measured(80)}, PLENTY) == ("life.kvtier.1", 3)
    assert names({piece.name: measured(1) for piece in PIECES}, PLENTY) == (None, 0)


def test_what_does_not_fit_the_run_is_left_out_for_what_does() -> None:
    done = {"copies": measured(40), "life.kvtier.1": measured(90)}
    assert names(done, Budget(130 + 60, 10_000)) == ("kind.mla", 1)
    assert names(done, Budget(130 + 40, 10_000)) == (None, 0)
    assert left_out(PIECES, done) == ["life.vllm.1", "life.none.1", "kind.mla"]


def test_what_does_not_fit_the_call_waits_for_the_next() -> None:
    done = {"copies": measured(40)}
    assert names(done, Budget(10_000, 100), called_s=40) == (None, 4)
    assert names(done, Budget(10_000, 100), called_s=0) == ("life.kvtier.1", 4)


def test_a_piece_is_expected_to_take_what_the_longest_of_its_kind_took() -> None:
    done = {"copies": measured(40), "life.kvtier.1": measured(150), "life.vllm.1": measured(20)}
    assert names(done, Budget(210 + 149, 10_000))[0] == "kind.mla"
    assert names(done, Budget(210 + 150, 10_000))[0] == "life.none.1"


@pytest.mark.parametrize("outcome", [{"error": "died"}, {"absent": "not installed"}])
def test_what_failed_is_not_tried_again_and_says_nothing_of_others(outcome: dict[str, Any]) -> None:
    done = {"copies": measured(40), "life.kvtier.1": {"seconds": 5.0, **outcome}}
    assert names(done, Budget(45 + 89, 10_000))[0] == "kind.mla"
    assert names(done, Budget(45 + 90, 10_000))[0] == "life.vllm.1"
