"""Commands that take files or the name of a resource: one of both."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kvtier_operator.api.resource import NAME_MESSAGE
from kvtier_operator.cli.doctor import doctor
from kvtier_operator.cli.plan import plan

HERE = Path(__file__)


@pytest.mark.parametrize("command", [plan, doctor])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give "),
        (["qwen", "-f", str(HERE)], "give "),
        (["-f", str(HERE), "-n", "llm"], "--namespace is of a NAME; a file says its own"),
        (["Qwen"], "'Qwen' is no KVCacheTier's: "),
        ([str(HERE)], f"{str(HERE)!r} is no KVCacheTier's: {NAME_MESSAGE}; for the file: -f {HERE}"),
        (["qwen", "-n", "A_B"], "'A_B' is not a namespace: "),
    ],
)
def test_what_is_not_one_of_both(command: click.Command, words: list[str], said: str) -> None:
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2
    assert f"Error: {said}" in result.stderr or f": {said}" in result.stderr
    assert "Traceback" not in result.output
