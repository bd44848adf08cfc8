"""How long the demo's prompts are on machines of any pace, and how that is measured."""

import json
from pathlib import Path

import pytest

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.demo.prompts import (
    MOST_DOCUMENT_TOKENS,
    MOST_SYSTEM_TOKENS,
    Lengths,
    Pace,
    default_lengths,
    fitting_lengths,
    measure_pace,
)

MINUTES = 300.0
FAST = Pace(token_s=2e-4, pair_s=1e-8)
# 57 s for 15,500 tokens.
SLOW = Pace(token_s=1.6e-3, pair_s=1.34e-7)


def test_a_prompts_time_grows_with_its_tokens_and_their_square() -> None:
    assert Pace(2e-3, 1e-6).prompt_s(1000) == pytest.approx(2 + 1)
    assert Pace(2e-3, 1e-6).prompt_s(2000) == pytest.approx(4 + 4)


def test_a_fast_machine_gets_the_longest_and_no_excuse() -> None:
    assert fitting_lengths(FAST, MINUTES) == Lengths(MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS)


def test_a_slow_machine_gets_shorter_ones_that_it_is_done_with_and_says_so() -> None:
    found = fitting_lengths(SLOW, MINUTES)
    assert found.document_tokens < MOST_DOCUMENT_TOKENS
    assert 5 * SLOW.prompt_s(found.document_tokens) < MINUTES / 4
    assert 40 * SLOW.prompt_s(found.system_tokens) < MINUTES / 4
    assert "15,500 tokens in about 57 s" in found.note
    assert f"{found.document_tokens:,}" in found.note


def test_more_time_gives_longer_ones() -> None:
    assert fitting_lengths(SLOW, 4 * MINUTES).document_tokens > fitting_lengths(SLOW, MINUTES).document_tokens


def test_no_machine_is_so_slow_that_nothing_is_left_to_show() -> None:
    found = fitting_lengths(Pace(1.0, 1.0), MINUTES)
    assert (found.document_tokens, found.system_tokens) == (2000, 500)


def test_what_was_asked_for_is_taken_and_needs_no_excuse() -> None:
    assert fitting_lengths(SLOW, MINUTES).with_documents(300) == Lengths(300, 300)
    assert fitting_lengths(FAST, MINUTES).with_documents(9000) == Lengths(9000, MOST_SYSTEM_TOKENS)


def test_shorter_system_prompts_are_said_where_documents_were_asked_for() -> None:
    asked = fitting_lengths(SLOW, MINUTES).with_documents(9000)
    assert asked.document_tokens == 9000
    assert f"system prompts have {asked.system_tokens:,} tokens (by default 1,500)" in asked.note


def test_a_pace_that_is_not_known_shortens_nothing() -> None:
    found = default_lengths("the config has no sizes")
    assert (found.document_tokens, found.system_tokens) == (MOST_DOCUMENT_TOKENS, MOST_SYSTEM_TOKENS)
    assert found.note.endswith("the config has no sizes.")


def test_a_config_without_a_size_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 64}))
    with pytest.raises(RuntimeFailedError, match=r"config\.json: 'num_hidden_layers' is missing$"):
        measure_pace(tmp_path)
