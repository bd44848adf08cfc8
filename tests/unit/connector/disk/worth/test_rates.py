"""What an engine has learnt, as text: read as it was written, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.disk.break_even import Pace, Rates

ALL = Rates(1e9, 30e-6, 2e-9)


@pytest.mark.parametrize("rates", [Rates(), ALL, Rates(read_bytes_per_s=5.0)])
def test_text_is_read_as_it_was_written(rates: Rates) -> None:
    assert Rates.parse(rates.text()) == rates


def test_text_has_the_names_that_other_versions_read() -> None:
    assert Rates(1.0, 2.0, 3.0).text() == '{"read_bytes_per_s": 1.0, "token_s": 2.0, "position_s": 3.0}\n'


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"other": 1}', '{"token_s": "x"}', '{"token_s": -1}', '{"token_s": NaN}']
)
def test_of_other_text_nothing_is_known(text: str) -> None:
    assert Rates.parse(text) == Rates()


def test_a_pace_needs_both_its_figures() -> None:
    assert ALL.pace == Pace(30e-6, 2e-9)
    assert Rates(token_s=1.0).pace is None


def test_what_is_new_is_kept_at_once_and_what_is_off_by_a_tenth_some_time() -> None:
    assert ALL.says_more_than(Rates(1e9))
    assert not Rates(1e9).says_more_than(ALL)
    assert not ALL.differs(Rates(1.05e9, 30e-6, 2e-9))
    assert ALL.differs(Rates(1.2e9, 30e-6, 2e-9))
    assert not Rates().differs(ALL)  # nothing is no news


@given(text=st.text() | st.binary().map(lambda each: each.decode(errors="replace")))
def test_rates_of_any_text(text: str) -> None:
    rates = Rates.parse(text)
    assert Rates.parse(rates.text()) == rates


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"token_s": 1e999}', '{"token_s": ' + "9" * 5000 + "}", "NaN"]
)
def test_rates_that_json_chokes_on(text: str) -> None:
    assert Rates.parse(text) == Rates()
