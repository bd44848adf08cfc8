"""What tokens cost, learnt from steps: a line through what they took."""

import random

import pytest

from kvtier_connector.core.disk.break_even import Pace, PrefillModel, TokenSpan


def learnt(pace: Pace, steps: list[TokenSpan], noise: float = 0.0) -> PrefillModel:
    model, chance = PrefillModel(), random.Random(5)  # noqa: S311 - noise
    for step in steps:
        model.measured(step, pace.seconds(step) * (1 + chance.uniform(-noise, noise)))
    return model


CHUNKED = [TokenSpan.of(first, first + 2048) for first in range(0, 30_720, 2048)]


def test_the_first_step_says_what_a_token_takes() -> None:
    model = PrefillModel()
    assert model.pace is None
    model.measured(TokenSpan.of(0, 1000), 2.0)
    assert model.pace
    assert model.pace.seconds(TokenSpan.of(0, 500)) == pytest.approx(1.0)


def test_steps_at_several_places_say_what_looking_back_takes() -> None:
    true = Pace(30e-6, 2e-9)
    found = learnt(true, CHUNKED).pace
    assert found
    assert found.token_s == pytest.approx(30e-6)
    assert found.position_s == pytest.approx(2e-9)
    whole = TokenSpan.of(0, 30_000)
    noisy = learnt(true, CHUNKED * 3, noise=0.1).pace
    assert noisy
    assert noisy.seconds(whole) == pytest.approx(true.seconds(whole), rel=0.08)


def test_a_pace_that_changes_is_followed() -> None:
    model = learnt(Pace(30e-6, 0.0), CHUNKED * 8)
    for step in CHUNKED * 32:
        model.measured(step, 60e-6 * step.tokens)
    assert model.pace
    assert model.pace.seconds(TokenSpan.of(0, 1000)) == pytest.approx(0.06, rel=0.05)


def test_no_part_of_it_is_ever_negative() -> None:
    chance = random.Random(1)  # noqa: S311 - noise
    model = PrefillModel()
    for _ in range(500):
        first = chance.randrange(20_000)
        model.measured(TokenSpan.of(first, first + chance.randrange(1, 4000)), chance.uniform(1e-4, 1.0))
        assert model.pace
        assert model.pace.token_s >= 0
        assert model.pace.position_s >= 0


def test_what_took_no_time_or_computed_nothing_says_nothing() -> None:
    model = PrefillModel(Pace(1.0, 0.0))
    model.measured(TokenSpan.of(0, 100), 0.0)
    model.measured(TokenSpan.of(7, 7), 1.0)
    assert model.pace == Pace(1.0, 0.0)


def test_parts_of_a_prompt_add_up() -> None:
    assert TokenSpan.of(0, 10) + TokenSpan.of(10, 25) == TokenSpan.of(0, 25)
