"""What clients can put into the log: little, and no line of its own."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.errors import BadRequestError, NoEndpointError
from kvtier_scorer.picker.observability.logs import LogRateLimiter, error_location, printable

LOG = logging.getLogger("a test")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("0f-1_a", "0f-1_a"),
        ("a\nERROR forged", "a\\nERROR\\x20forged"),
        ("\x1b[31m\r\x00\x7f", "\\x1b[31m\\r\\x00\\x7f"),
        ("\u2028é\\", "\\u2028\\xe9\\\\"),
        ("\ud800", "?"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 64 + "..."),
    ],
)
def test_identifiers_are_visible_and_short(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(max_size=100))
def test_whatever_the_text_is_it_is_one_word(text: str) -> None:
    shown = printable(text)
    assert all("!" <= each <= "~" for each in shown)
    assert len(shown) <= 64 * len("\\U0001f600") + len("...")


def test_one_line_a_kind_in_a_while_with_the_count_of_the_others(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    rate_limited_log = LogRateLimiter(LOG, 10, lambda: now_s)
    caplog.set_level(logging.INFO)
    for _ in range(1000):
        rate_limited_log.log(logging.INFO, BadRequestError, "refused: %s", "a body")
    rate_limited_log.log(logging.WARNING, NoEndpointError, "another kind")
    now_s = 9.9
    rate_limited_log.log(logging.INFO, BadRequestError, "refused: %s", "a body")
    now_s = 10.0
    rate_limited_log.log(logging.INFO, BadRequestError, "refused: %s", "another body")
    now_s = 20.0
    rate_limited_log.log(logging.INFO, BadRequestError, "refused: %s", "a third")
    assert [record.getMessage() for record in caplog.records] == [
        "refused: a body",
        "another kind",
        "refused: another body (and 1000 times more since this was last told)",
        "refused: a third",
    ]


def test_a_fault_is_told_by_its_place_and_not_by_what_it_quotes() -> None:
    try:
        int("secret prompt")
    except ValueError as error:
        told = error_location(error)
    assert told.startswith("ValueError at test_log_lines.py:")
    assert "secret" not in told
