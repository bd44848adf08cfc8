"""A new sub-command is one file and its entry point."""

from typing import Final

from tests.unit.additions.copied import Copied

PACKAGE: Final = "kvtier_operator.cli"
_COMMAND: Final = '''
import click


@click.command(short_help="Greet somebody.")
@click.argument("name")
def toy(name: str) -> None:
    """Greet somebody by name."""
    click.echo(f"hello {name}")
'''


def test_two_files(copy: Copied) -> None:
    copy.write("operator/kvtier_operator/cli/toy.py", _COMMAND)
    entry_points = '[project.entry-points."kvtier.bench"]'
    copy.insert("pyproject.toml", f"\n{entry_points}", f'toy = "{PACKAGE}.toy:toy"\n')
    assert copy.kvtier("toy", "you") == "hello you\n"
    assert "Greet somebody." in copy.kvtier("--help")
    assert copy.changed() == {"operator/kvtier_operator/cli/toy.py", "pyproject.toml"}
