"""Options of several names: separated by commas, repeated, each once."""

import click
import pytest
from click.testing import CliRunner

from kvtier_connector.bench.names import names_of, names_shown

KNOWN = ("ttft", "workloads", "disk")


@click.command()
@click.option("--only", multiple=True, callback=names_of(KNOWN), metavar=names_shown(KNOWN))
def command(only: tuple[str, ...]) -> None:
    click.echo(" ".join(only))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ""),
        (["--only", "ttft"], "ttft"),
        (["--only", "ttft,workloads"], "ttft workloads"),
        (["--only", "workloads", "--only", "ttft"], "workloads ttft"),
        (["--only", "disk, ttft", "--only", "ttft"], "disk ttft"),
    ],
)
def test_names_in_the_order_given(arguments: list[str], names: str) -> None:
    assert CliRunner().invoke(command, arguments).output.strip() == names


@pytest.mark.parametrize("given", ["ttf", "ttft,", "", "ttft workloads"])
def test_another_name_ends_it_with_those_that_are_known(given: str) -> None:
    found = CliRunner().invoke(command, ["--only", given])
    assert found.exit_code == 2
    assert "is not one of 'ttft', 'workloads', 'disk'." in found.output


def test_help_lists_them() -> None:
    assert "--only [ttft|workloads|disk],..." in CliRunner().invoke(command, ["--help"]).output
