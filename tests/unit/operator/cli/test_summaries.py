"""Lists of commands take each one's line from its file, where every command must have one."""

from importlib.metadata import EntryPoint, distribution

import click
import pytest

from kvtier_operator.cli.main import summary

COMMANDS = [
    each
    for group in ("kvtier.commands", "kvtier.bench")
    for each in distribution("kvtier").entry_points.select(group=group)
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_every_command_has_a_summary(command: EntryPoint) -> None:
    assert summary(command)


def test_is_what_the_command_says_itself() -> None:
    [command] = [command for command in COMMANDS if command.name == "render"]
    loaded = command.load()
    assert isinstance(loaded, click.Command)
    assert summary(command) == loaded.short_help
