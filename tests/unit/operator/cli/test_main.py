"""What is said of a sub-command that there is not."""

import pytest
from click.testing import CliRunner

from kvtier_operator.cli.main import EXIT_BAD_INPUT, kvtier


@pytest.mark.parametrize(
    ("typed", "last_line"),
    [
        (["plam"], "Error: No such command 'plam'. Did you mean 'plan'?"),
        (["bench", "jobs"], "Error: No such command 'jobs'. Did you mean 'job'?"),
        (["qqq"], "Error: No such command 'qqq'."),
        (["--plan"], "Error: No such option '--plan'."),
    ],
    ids=str,
)
def test_the_nearest_command_is_named(typed: list[str], last_line: str) -> None:
    result = CliRunner().invoke(kvtier, typed)
    assert result.exit_code == EXIT_BAD_INPUT
    assert result.stderr.splitlines()[-1] == last_line
