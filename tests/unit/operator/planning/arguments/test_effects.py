"""The one table of what each option of vLLM takes."""

import pytest

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.arguments.effects import EFFECTS, EffectKind, effect_of, effects_of, forms_of
from kvtier_operator.planning.arguments.serve_options import serve_options
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS


def option_of(*words: str) -> str | None:
    effect = effect_of(CommandLine(words).arguments[0])
    return effect.option if effect else None


@pytest.mark.parametrize("minor", KNOWN_MINORS)
def test_every_option_of_a_minor_is_in_the_table(minor: int) -> None:
    """A new minor's options are red here until somebody has said what they take."""
    missing = {name for name in serve_options(minor) if option_of(name) is None}
    assert not missing


def test_the_table_has_no_option_that_no_minor_knows() -> None:
    known = {name for minor in KNOWN_MINORS for name in serve_options(minor)}
    assert {option for option in EFFECTS if known.isdisjoint(forms_of(option))} == set()


def test_what_acts_on_a_plan_says_how() -> None:
    assert all(bool(effect.rule) == (effect.kind is not EffectKind.NOTHING) for effect in EFFECTS.values())


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("--model", "--model"),  # not the --model-impl that it begins
        ("--no-enable-lora", "--enable-lora"),
        ("--disable-lora", "--enable-lora"),
        ("--disable-log-stats", "--disable-log-stats"),
        ("--eplb_config.num_redundant_experts=2", "--eplb-config"),
        ("--eplb-conf", "--eplb-config"),
        ("-tp=2", "--tensor-parallel-size"),
        ("-O3", "--optimization-level"),
        ("--no-such-option", None),
    ],
)
def test_an_option_is_known_by_each_of_its_names(word: str, option: str | None) -> None:
    assert option_of(word) == option


def test_options_that_do_nothing_have_no_line_and_others_have_one() -> None:
    line = CommandLine(("--seed", "1", "--enforce-eager", "--load-format=dummy", "--no-enforce-eager"))
    assert [effect.option for effect in effects_of(line)] == ["--load-format", "--enforce-eager"]
