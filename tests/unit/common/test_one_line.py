"""What others wrote fits one line."""

import shutil
import subprocess

import pytest

from kvtier_common.one_line import one_line, shell_line, shell_word


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


def test_what_needs_nothing_is_left_as_it_is() -> None:
    assert shell_line(["vllm", "serve", "a b", "it's"], {"A": "1"}) == "A=1 vllm serve 'a b' 'it'\"'\"'s'"


@pytest.mark.parametrize(
    "text", ["a\nb", "it's\x1b[31m \\ \"$x`", "\x9b2J\u202e\u2028", "\U000e0041é\x07f", "\r\t"], ids=range(5)
)
def test_a_shell_reads_what_was_escaped(text: str) -> None:
    word = shell_word(text)
    assert word.isprintable()
    bash = shutil.which("bash")
    assert bash
    printed = subprocess.run(  # noqa: S603 - what is tested
        [bash, "-c", f"printf %s {word}"], env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True
    )
    assert printed.stdout.decode() == text
