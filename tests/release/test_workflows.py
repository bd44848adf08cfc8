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


def test_programs_are_installed_one_by_one_and_are_those_of_the_tests() -> None:
    """`go install` takes packages of one module at a time."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    installed = re.findall(r"^ *- run: go install (\S+)@(\S+)$", text, re.MULTILINE)
    assert text.count("go install") == len(installed)
    required = (ROOT / "tests" / "tools" / "oras" / "go.mod").read_text()
    assert f"\toras.land/oras {dict(installed)['oras.land/oras/cmd/oras']} " in required
    assert "@".join(installed[0]) in (ROOT / "operator" / "kvtier_release" / "commands.py").read_text()


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
