"""The command with pieces that measure nothing: what is kept, and where a second call goes on."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.bench.card import __main__ as command
from tests.bench.card.budget import Piece
from tests.bench.card.settings import CPU, Settings, default_sides
from tests.unit.bench.card.lives import lived

SETTINGS = Settings.on(CPU, "demo", default_sides(CPU), 4)


class Card:
    """Pieces that take four minutes each of a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.out, self.asked, self.now_s, self.fails = folder / "run", list[str](), 0.0, list[str]()
        monkeypatch.setattr(command, "_outcome", self._outcome)
        monkeypatch.setattr(command, "about_here", lambda device: {"card": device})
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)

    def _outcome(self, piece: Piece, _out: Path) -> dict[str, Any]:
        self.asked.append(piece.name)
        self.now_s += 240
        return (
            {"error": "died"}
            if piece.name in self.fails
            else {"figures": lived(SETTINGS, tier=piece.what != "none")}
        )

    def run(self, *options: str) -> Result:
        return CliRunner().invoke(command.main, ["--device", "cpu", "--out", str(self.out), *options])

    def report(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads((self.out / "card.json").read_text())


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Card:
    return Card(monkeypatch, tmp_path)


def test_one_call_measures_all_and_prints_the_table(card: Card) -> None:
    result = card.run()
    assert result.exit_code == 0, result.output
    assert card.asked == ["life.kvtier.1", "life.none.1"]
    assert (card.out / "card.md").read_text() in result.output
    assert list(card.report()["ttft"]["sides"]) == ["kvtier", "none"]


def test_a_second_call_goes_on_where_the_first_ended(card: Card) -> None:
    first = card.run("--call-minutes", "4.5")
    assert (first.exit_code, card.asked) == (command.EXIT_AGAIN, ["life.kvtier.1"])
    assert "1 pieces are left" in first.output
    assert card.report()["left_out"] == ["life.none.1"]
    assert card.run("--call-minutes", "4.5").exit_code == 0
    assert card.asked == ["life.kvtier.1", "life.none.1"]
    assert card.report()["left_out"] == []


def test_a_call_too_short_for_anything_says_what_would_do(card: Card) -> None:
    result = card.run("--call-minutes", "1")
    assert (result.exit_code, card.asked) == (2, [])
    assert "a piece takes up to 240 s: give --call-minutes 4 or more" in " ".join(result.output.split())


def test_what_does_not_fit_the_minutes_is_left_out_and_said(card: Card) -> None:
    result = card.run("--minutes", "4.5")
    assert (result.exit_code, card.asked) == (0, ["life.kvtier.1"])
    assert "left out, for want of time: `life.none.1`" in result.output


def test_what_fails_takes_nothing_along_and_is_not_tried_again(card: Card) -> None:
    card.fails = ["life.kvtier.1"]
    assert card.run().exit_code == 0
    result = card.run()
    assert card.asked == ["life.kvtier.1", "life.none.1"]
    assert "- `life.kvtier.1`: died" in result.output
    assert "one side only" in result.output


def test_a_run_in_which_all_fails_is_no_success(card: Card) -> None:
    card.fails = ["life.kvtier.1", "life.none.1"]
    result = card.run()
    assert result.exit_code == 1
    assert "nothing was measured: died" in result.output


def test_half_an_outcome_is_named(card: Card) -> None:
    card.run()
    (card.out / "pieces" / "life.none.1.json").write_text("{")
    result = card.run()
    assert result.exit_code == 2
    assert "life.none.1.json is no piece's outcome" in " ".join(result.output.split())


def test_a_folder_has_one_run(card: Card) -> None:
    card.run()
    result = card.run("--prompts", "9")
    assert result.exit_code == 2
    assert "is of other settings" in result.output
    assert len(card.asked) == 2


def test_a_side_that_is_not_there_is_said_and_costs_nothing(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "absent", lambda side: "it is not installed" if side == "lmcache" else "")
    result = card.run("--sides", "lmcache,kvtier")
    assert card.asked == ["life.kvtier.1"]
    assert "- `life.lmcache.1`: it is not installed" in result.output
