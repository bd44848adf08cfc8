"""Every command's help is there at once, whatever is installed: it loads next to nothing."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions

import click
import pytest

from kvtier_operator.cli.main import kvtier
from kvtier_operator.reconcile.__main__ import main as operator

PROGRAM = """
import sys
before = {*sys.modules}
import click
from kvtier_operator.cli.main import kvtier
from kvtier_operator.reconcile.__main__ import main as operator
arguments = sys.argv[1:]
command = operator if arguments[0] == "kvtier-operator" else kvtier
try:
    command(arguments[1:], prog_name=arguments[0])
finally:
    print(*sorted({name.partition(".")[0] for name in {*sys.modules} - before}), file=sys.stderr)
"""

PACKAGES = packages_distributions()
LIGHT = {"click", "PyYAML"}
"""Of what is always installed; pydantic alone takes longer than all of help."""


def tree(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, with how each is typed."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from tree(child, (*path, name))


COMMANDS = dict((*tree(kvtier, ("kvtier",)), *tree(operator, ("kvtier-operator",))))


def test_the_whole_tree_is_walked() -> None:
    assert {
        ("kvtier",),
        ("kvtier", "plan"),
        ("kvtier", "bench"),
        ("kvtier", "bench", "connector"),
        ("kvtier-operator",),
    } <= {*COMMANDS}


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_loads_nothing_heavy(path: tuple[str, ...], option: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM, *path, option], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"Usage: {' '.join(path)} ")
    loaded = {package for module in done.stderr.split() for package in PACKAGES.get(module, ())}
    assert loaded - {"kvtier"} <= LIGHT


@pytest.mark.parametrize("columns", [80, 120, 200])
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_the_terminal(path: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    context: click.Context | None = None
    for end in range(len(path)):
        command = COMMANDS[path[: end + 1]]
        context = click.Context(command, context, path[end], **command.context_settings)
    assert context is not None
    assert max(map(len, context.get_help().splitlines())) <= min(columns, 120)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    options = [each for each in COMMANDS[path].params if isinstance(each, click.Option) and not each.hidden]
    assert [each.name for each in options if not each.help] == []
    assert COMMANDS[path].help
