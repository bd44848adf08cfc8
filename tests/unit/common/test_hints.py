"""What a request may say of its blocks: read as meant, and no word of it ever an error."""

import pytest

from kvtier_common.hints import (
    MOST_UNKNOWN,
    NAMES,
    NO_HINTS,
    REASONS,
    Hints,
    Priority,
    parse_hints,
    read_headers,
    reason_of,
)

ALL = Hints(retain_s=300.0, priority=Priority.HIGH, tenant="team-a", never_store=True, prefetch=True)


def test_hints_are_read_back_as_they_are_written() -> None:
    assert parse_hints(ALL.to_params()) == (ALL, [])
    assert parse_hints(NO_HINTS.to_params()) == (NO_HINTS, [])


def test_headers_say_the_same_as_a_body() -> None:
    headers = {f"x-kvtier-{name}": str(said) for name, said in ALL.to_params().items()}
    assert read_headers({"host": "a", **headers}) == (ALL, [])


@pytest.mark.parametrize("name", ["nostore", "prefetch"])
def test_a_headers_switch_is_a_word_as_people_write_it(name: str) -> None:
    for texts, said in ((("true", "1", "Yes", "on"), True), (("false", "0", "no", "OFF"), False)):
        for text in texts:
            assert read_headers({f"x-kvtier-{name}": text}) == parse_hints({name: said})
    assert read_headers({f"x-kvtier-{name}": "maybe"})[1]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"retain": -1}, "retain: must be 0 to 86400 seconds"),
        ({"retain": float("nan")}, "retain: must be 0 to 86400 seconds"),
        ({"retain": True}, "retain: must be 0 to 86400 seconds"),
        ({"priority": "urgent"}, "priority: must be low, normal or high"),
        ({"share": ""}, "share: must be a tenant's name of 1 to 63 characters"),
        ({"nostore": "yes"}, "nostore: must be true or false"),
        (
            {"pin": 1},
            "an unknown hint; known are retain, priority, share, nostore, prefetch",
        ),
        ([1], f"kv_transfer_params.kvtier: must be an object with any of {', '.join(NAMES)}"),
    ],
)
def test_what_is_not_understood_is_told_and_left_out(said: object, problem: str) -> None:
    assert parse_hints(said) == (NO_HINTS, [problem])


def test_what_is_understood_counts_beside_what_is_not() -> None:
    hints, problems = parse_hints({"retain": "soon", "priority": "low"})
    assert hints == Hints(priority=Priority.LOW)
    assert len(problems) == 1


def test_many_unknown_names_are_a_few_problems_and_hide_no_known_one() -> None:
    said: dict[object, object] = {**dict.fromkeys(range(100_000)), "nostore": True}
    hints, problems = parse_hints(said)
    assert hints == Hints(never_store=True)
    assert [reason_of(problem) for problem in problems] == ["unknown"] * (MOST_UNKNOWN + 1)


def test_each_problem_has_one_of_a_few_reasons() -> None:
    said = {**dict.fromkeys(NAMES), "pin": 1, "retain:": 2}
    _, problems = parse_hints(said)
    assert [reason_of(problem) for problem in problems] == [*NAMES, "unknown", "unknown"]
    (of_form,) = parse_hints("retain")[1]
    assert {reason_of(of_form), *map(reason_of, problems)} == set(REASONS)
