"""The scripts that shells read, and bash with its own."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class
from click.testing import CliRunner

from kvtier_operator.cli.completion import completion
from kvtier_operator.cli.main import COMPLETE_VARIABLE, kvtier

TYPED = """\
source /dev/stdin
COMP_WORDS=(kvtier explain spec.tiers.c) COMP_CWORD=2
_kvtier_completion "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_clicks_own(shell: str) -> None:
    source = get_completion_class(shell)
    assert source is not None
    printed = CliRunner().invoke(completion, [shell], catch_exceptions=False).stdout
    assert printed == source(kvtier, {}, "kvtier", COMPLETE_VARIABLE).source()


def test_bash_completes_a_path(tmp_path: Path) -> None:
    program = tmp_path / "kvtier"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kvtier_operator.cli "$@"\n')
    program.chmod(0o755)
    script = CliRunner().invoke(completion, ["bash"], catch_exceptions=False).stdout
    done = subprocess.run(  # noqa: S603 - our own interpreter
        ["bash", "--norc", "-c", TYPED, "bash", str(program)],  # noqa: S607 - whichever bash there is
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "spec.tiers.cpu\n"


@pytest.mark.parametrize(
    ("option", "typed", "value"),
    [("--model", "qwen/qwen3-32", "Qwen/Qwen3-32B"), ("--gpu", "h1", "h100"), ("--backend", "kv", "KVTier")],
)
@pytest.mark.parametrize("command", ["plan", "init"])
def test_values_are_completed(command: str, option: str, typed: str, value: str) -> None:
    complete = ShellComplete(kvtier, {}, "kvtier", COMPLETE_VARIABLE)
    assert value in [item.value for item in complete.get_completions([command, option], typed)]
