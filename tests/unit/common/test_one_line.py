"""What others wrote fits one line."""

import pytest

from kvtier_common.one_line import one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("as it is", "as it is"),
        (" two\n\tlines\u2028and\x85more ", "two lines and more"),
        ("\x1b[31mred\x00\u202e", "?[31mred??"),
        ("ten letters", "ten letter ..."),
    ],
)
def test_lines(text: str, line: str) -> None:
    assert one_line(text, 10 if "ten" in text else 100) == line


def test_of_a_long_text_the_beginning_is_looked_at() -> None:
    assert one_line("a" * 10_000_000, 3) == "aaa ..."
    assert one_line(" " * 10_000_000 + "a", 3) == ""
