"""What tokens cost, and whether reading pays: learnt from steps and reads, and kept for the next engine."""

import random
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvtier_connector.core.behind.break_even import (
    Bandwidth,
    BreakEven,
    Pace,
    PrefillModel,
    Rates,
    ReadingPays,
    TokenSpan,
    WriteBudget,
)


def learnt(pace: Pace, steps: list[TokenSpan], noise: float = 0.0) -> PrefillModel:
    model, chance = PrefillModel(), random.Random(5)  # noqa: S311 - noise
    for step in steps:
        model.add(step, pace.seconds(step) * (1 + chance.uniform(-noise, noise)))
    return model


CHUNKED = [TokenSpan.of(first, first + 2048) for first in range(0, 30_720, 2048)]


def test_the_first_step_says_what_a_token_takes() -> None:
    model = PrefillModel()
    assert model.pace is None
    model.add(TokenSpan.of(0, 1000), 2.0)
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
        model.add(step, 60e-6 * step.tokens)
    assert model.pace
    assert model.pace.seconds(TokenSpan.of(0, 1000)) == pytest.approx(0.06, rel=0.05)


def test_no_part_of_it_is_ever_negative() -> None:
    chance = random.Random(1)  # noqa: S311 - noise
    model = PrefillModel()
    for _ in range(500):
        first = chance.randrange(20_000)
        model.add(TokenSpan.of(first, first + chance.randrange(1, 4000)), chance.uniform(1e-4, 1.0))
        assert model.pace
        assert model.pace.token_s >= 0
        assert model.pace.position_s >= 0


def test_what_took_no_time_or_computed_nothing_says_nothing() -> None:
    model = PrefillModel()
    model.pace = Pace(1.0, 0.0)
    model.add(TokenSpan.of(0, 100), 0.0)
    model.add(TokenSpan.of(7, 7), 1.0)
    assert model.pace == Pace(1.0, 0.0)


def test_parts_of_a_prompt_add_up() -> None:
    assert TokenSpan.of(0, 10) + TokenSpan.of(10, 25) == TokenSpan.of(0, 25)


ALL = Rates(1e9, 30e-6, 2e-9)


@pytest.mark.parametrize("rates", [Rates(), ALL, Rates(read_bytes_per_s=5e6)])
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
    "text",
    [
        "[" * 100_000,
        '{"token_s": 1e999}',
        '{"token_s": ' + "9" * 5000 + "}",
        "NaN",
        '{"read_bytes_per_s": 5e-324}',
        '{"read_bytes_per_s": 1e308}',
    ],
)
def test_rates_that_json_chokes_on(text: str) -> None:
    assert Rates.parse(text) == Rates()


MIB = 1 << 20
HOUR_S = 3600.0


TOKEN_BYTES = 262_144  # Qwen3-32B in bfloat16: 1 GB/s reads 3,815 tokens/s


# ---- bandwidth ----


def test_a_bandwidth_follows_what_is_measured_later() -> None:
    bandwidth = Bandwidth()
    assert bandwidth.per_second is None
    bandwidth.add(256 * MIB, 0.25)
    assert bandwidth.per_second == pytest.approx(1024 * MIB)
    bandwidth.add(64 * MIB, 1)
    halfway = bandwidth.per_second
    assert halfway
    assert 64 * MIB < halfway < 1024 * MIB
    bandwidth.add(1024 * MIB, 16)
    assert bandwidth.per_second == pytest.approx(64 * MIB, rel=0.01)


# ---- break-even ----


def measured(bytes_per_s: float, tokens_per_s: float) -> BreakEven:
    break_even = BreakEven()
    break_even.read.add(1 << 30, (1 << 30) / bytes_per_s)
    break_even.prefill.add(TokenSpan.of(0, 8192), 8192 / tokens_per_s)
    return break_even


def pays(break_even: BreakEven, tokens: int = 8192) -> ReadingPays:
    return break_even.reading_pays(TokenSpan.of(0, tokens), tokens * TOKEN_BYTES)


def test_nobody_waits_for_what_is_not_known() -> None:
    assert pays(BreakEven()) is ReadingPays.NOT_KNOWN
    only_disk, only_pace = BreakEven(), BreakEven()
    only_disk.read.add(1 << 30, 1e-6)
    only_pace.prefill.add(TokenSpan.of(0, 8192), 1e6)
    assert pays(only_disk) is pays(only_pace) is ReadingPays.NOT_KNOWN


def test_reading_pays_where_it_is_sooner_than_computing_and_not_only_just() -> None:
    assert pays(measured(1e9, 3500)) is ReadingPays.PAYS
    assert pays(measured(1e9, 3800)) is ReadingPays.DOES_NOT  # by less than figures are off
    assert pays(measured(1e9, 4000)) is ReadingPays.DOES_NOT
    assert pays(measured(2e9, 4000)) is ReadingPays.PAYS


def test_a_few_tokens_are_not_worth_another_round_through_the_engine() -> None:
    break_even = measured(1e9, 3500)
    assert pays(break_even, 64) is ReadingPays.DOES_NOT


def test_what_is_read_first_counts_too() -> None:
    break_even = measured(1e9, 3000)
    tokens = TokenSpan.of(0, 8192)
    assert break_even.reading_pays(tokens, 8192 * TOKEN_BYTES) is ReadingPays.PAYS
    assert break_even.reading_pays(tokens, 2 * 8192 * TOKEN_BYTES) is ReadingPays.DOES_NOT


def test_what_an_engine_found_serves_the_next_one_until_that_has_measured() -> None:
    before = measured(1e9, 3000)
    after = BreakEven(before.rates)
    assert pays(after) is ReadingPays.PAYS
    assert after.rates.read_bytes_per_s == pytest.approx(1e9)
    after.read.add(64 * MIB, 1.0)
    assert pays(after) is ReadingPays.DOES_NOT
    assert BreakEven(Rates()).rates == Rates()


def test_it_can_be_told_to_use_the_disk_whatever_was_measured() -> None:
    assert pays(BreakEven(always=True)) is ReadingPays.PAYS
    assert pays(BreakEven(measured(1e6, 1e6).rates, always=True)) is ReadingPays.PAYS


def test_its_figures_can_be_read() -> None:
    told = measured(1e9, 4000).describe(TokenSpan.of(0, 8000), 8000 * TOKEN_BYTES)
    assert told == "8000 tokens are read in 2.10 s (1.00 GB/s) and computed in 2.00 s"
    assert BreakEven().describe(TokenSpan.of(0, 1), 1.0) == "nothing was measured yet"


# ---- the budget ----


def test_no_bound_grants_everything() -> None:
    assert WriteBudget(0, 0.0).take(10**9, MIB, 0.0) == 10**9


def test_a_budget_is_spent_and_comes_back() -> None:
    budget = WriteBudget(3600 * MIB, 0.0)
    burst = budget.take(10**6, MIB, 0.0)
    assert burst == 600
    assert budget.take(1, MIB, 0.0) == 0
    assert budget.take(10, MIB, 1.0) == 0  # 5/6 of a block
    assert budget.take(10, MIB, 1.3) == 1
    assert budget.take(10**6, MIB, HOUR_S) in {599, 600}  # no more than the burst was saved


def test_a_clock_that_stands_still_gives_nothing() -> None:
    budget = WriteBudget(3600 * MIB, 100.0)
    budget.take(10**6, MIB, 100.0)
    assert [budget.take(5, MIB, 100.0) for _ in range(3)] == [0, 0, 0]


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.floats(0, 2000), st.sampled_from([0, 1, 300])), min_size=1, max_size=60),
)
@example(6, [(0.0, 300)] + [(599.0, 300)] * 6)
@example(12, [(4000.0, 300)] + [(100.0, 1)] * 40)
def test_no_hour_has_more_than_the_bound(blocks_an_hour: int, asked: list[tuple[float, int]]) -> None:
    bound = blocks_an_hour * MIB
    budget = WriteBudget(bound, 0.0)
    times = list(accumulate(pause for pause, _ in asked))
    granted = [budget.take(count, MIB, at) for at, (_, count) in zip(times, asked, strict=True)]
    for first, start in enumerate(times):
        within = sum(
            g for g, at in zip(granted[first:], times[first:], strict=True) if at < start + HOUR_S - 1e-6
        )
        assert within * MIB <= bound


@pytest.mark.parametrize("blocks_an_hour", [1, 2, 5, 100, 5000])
def test_who_always_asks_gets_most_of_the_bound(blocks_an_hour: int) -> None:
    budget = WriteBudget(blocks_an_hour * MIB, 0.0)
    chance = random.Random(blocks_an_hour)  # noqa: S311 - to be the same again
    at_s = total = 0.0
    while at_s < 20 * HOUR_S:
        at_s += chance.random() * 20
        total += budget.take(1000, MIB, at_s)
    assert 0.75 * 20 * blocks_an_hour <= total <= 21 * blocks_an_hour


def test_a_block_larger_than_the_bound_is_never_written() -> None:
    budget = WriteBudget(MIB, 0.0)
    assert [budget.take(1, 2 * MIB, hour * HOUR_S) for hour in range(5)] == [0] * 5
