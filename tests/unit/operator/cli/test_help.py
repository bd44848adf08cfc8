"""Every command's help is there at once, whatever is installed: it loads next to nothing."""

import json
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
import contextlib, io, json
import click
from kvtier_operator.cli.main import kvtier
from kvtier_operator.reconcile.__main__ import main as operator
helps = []
for name, *arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        (operator if name == "kvtier-operator" else kvtier)(arguments, prog_name=name)
    loaded = {module.partition(".")[0] for module in {*sys.modules} - before}
    helps.append([said.getvalue(), sorted(loaded)])
print(json.dumps(helps))
"""

PACKAGES = packages_distributions()
LIGHT = {"click", "PyYAML", "typing_extensions"}
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


def test_help_loads_nothing_heavy() -> None:
    """All of it, in one process: what any command loads is loaded then."""
    asked = [(*path, option) for path in COMMANDS for option in ("--help", "-h")]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROGRAM, json.dumps(asked)], capture_output=True, text=True, check=True
    )
    for (*path, _), (said, modules) in zip(asked, json.loads(done.stdout), strict=True):
        assert said.startswith(f"Usage: {' '.join(path)} ")
        loaded = {package for module in modules for package in PACKAGES.get(module, ())}
        assert loaded - {"kvtier"} <= LIGHT, path


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for path in COMMANDS:
        context: click.Context | None = None
        for end in range(len(path)):
            command = COMMANDS[path[: end + 1]]
            context = click.Context(command, context, path[end], **command.context_settings)
        assert context is not None
        assert max(map(len, context.get_help().splitlines())) <= min(columns, 120), path


def test_every_option_is_explained() -> None:
    for path, command in COMMANDS.items():
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        assert [option.name for option in options if not option.help] == [], path
        assert command.help, path
