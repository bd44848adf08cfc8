"""Text that fits a terminal, and commands it to do nothing."""

import pytest

from kvtier_operator.cli.text import cut, fold


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
