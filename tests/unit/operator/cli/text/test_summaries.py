"""Lists of commands come from a table of their own, which has to have every command."""

from importlib.metadata import distribution

import pytest

from kvtier_operator.cli.text.summaries import SUMMARIES


@pytest.mark.parametrize("group", SUMMARIES)
def test_every_command_has_a_summary(group: str) -> None:
    commands = distribution("kvtier").entry_points.select(group=group)
    assert {each.name for each in commands} == {*SUMMARIES[group]}
