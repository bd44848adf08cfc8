"""The workflows of a public forge: taken by their linter, and made of targets that are there."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.cluster.harness.programs.tools import Say, program

ROOT = Path(__file__).parents[2]
# What else it would run, where a machine has it, says something else on each machine.
ALONE = ("-shellcheck=", "-pyflakes=")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_their_linter_takes_them(say: Say) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [program("actionlint", say), *ALONE, *WORKFLOWS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_looks(say: Say, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{ran: make test}]}}\n")
    done = subprocess.run(  # noqa: S603 - our own command
        [program("actionlint", say), *ALONE, wrong], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "step must run script with" in done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_their_targets_are_there(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        word
        for line in re.findall(r"\bmake ([a-z][^\n]*)", workflow.read_text())
        for word in line.split()
        if re.fullmatch(r"[a-z-]+", word)
    }
    assert called
    assert called <= targets
