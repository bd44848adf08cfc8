"""Plans say what vLLM does, of every model and combination, in both minors."""

import pytest
from tests.engine.planning.oracle.answers import MINORS, answers
from tests.engine.planning.oracle.cases import Case, cases
from tests.engine.planning.oracle.compare import differences
from tests.engine.planning.oracle.library import library_cases

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_a_plan_says_what_vllm_does(case: Case, minor: str) -> None:
    assert not list(differences(case, answers(minor)[case.name], minor))


@pytest.mark.long  # hundreds of models more are built
@pytest.mark.parametrize("minor", MINORS)
def test_a_plan_says_what_vllm_does_of_other_types(minor: str) -> None:
    said = answers(minor, "library")
    assert len(said) > len(list(cases()))
    assert sum(entry.get("answer") is not None for entries in said.values() for entry in entries) > 400
    found = [
        difference for case in library_cases() for difference in differences(case, said[case.name], minor)
    ]
    assert not found


def test_most_combinations_start() -> None:
    """An oracle whose models cannot be built would agree with everything that is refused."""
    for minor in MINORS:
        said = [entry for entries in answers(minor).values() for entry in entries]
        assert len(said) > 3000
        started = sum(entry.get("answer") is not None for entry in said)
        assert started > len(said) / 2
