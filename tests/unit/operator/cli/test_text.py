"""Text that fits a terminal, and commands it to do nothing."""

import pytest

from kvtier_operator.cli.text import cut, fold, table

HEADINGS = ("name", "state", "count")
ROWS = (("a-long-name-of-a-pod", "ready", "1,024"), ("b", "Unschedulable", "7"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as it is …", "as it is …"),
        ("\x1b]0;owned\x07", "?]0;owned?"),
        ("two\nlines", "two lines"),
        ("over\rwritten", "over written"),
        ("\u202egnorw", "?gnorw"),
    ],
)
def test_nothing_of_it_is_a_command(text: str, shown: str) -> None:
    assert cut(text, 80) == shown
    assert fold(text, 80) == [shown]


def test_what_is_too_long() -> None:
    assert cut("abcdef", 4) == "abc…"
    assert fold("ab cdef", 4) == ["ab", "cdef"]


def test_figures_to_the_right_and_text_to_the_left() -> None:
    assert table(HEADINGS, ROWS, 80, text=("state",)) == [
        "name                  state          count",
        "a-long-name-of-a-pod  ready          1,024",
        "b                     Unschedulable      7",
    ]


def test_the_first_column_gives_way() -> None:
    assert table(HEADINGS, ROWS, 32, text=("state",)) == [
        "name        state          count",
        "a-long-na…  ready          1,024",
        "b           Unschedulable      7",
    ]


def test_another_column_gives_way() -> None:
    assert table(HEADINGS, ROWS, 40, text=("state",), gives_way="state") == [
        "name                  state        count",
        "a-long-name-of-a-pod  ready        1,024",
        "b                     Unschedula…      7",
    ]


@pytest.mark.parametrize("columns", [10, 20, 40])
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    assert max(map(len, table(HEADINGS, ROWS, columns))) <= columns
