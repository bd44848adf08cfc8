"""`kvtier run` as far as it goes without an engine; the rest is in tests/engine/runtime."""

from pathlib import Path

from click.testing import CliRunner
from tests.unit.operator.cli.test_plan import write

from kvtier_operator.cli.run import run

TEMPLATE = {"podTemplate": {"spec": {"schedulerName": "volcano"}}}


def test_what_is_for_pods_is_left_out_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, engine=TEMPLATE, router=TEMPLATE)
    said = CliRunner().invoke(run, ["-f", path, "--dry-run"]).stderr
    [line] = [line for line in said.splitlines() if "podTemplate" in line]
    both = "spec.engine.podTemplate, spec.router.podTemplate"
    assert line == f"{path}: {both}: for pods alone, and this makes none: left out"


def test_a_dry_run_needs_nothing_that_it_does_not_run(tmp_path: Path) -> None:
    """A GPU, that is: the commands of another machine are printed, with what this one lacks."""
    done = CliRunner().invoke(run, ["-f", write(tmp_path, tiers={"cpu": {"capacity": "1Gi"}}), "--dry-run"])
    assert done.exit_code == 0
    assert "vllm.entrypoints.openai.api_server" in done.stdout
    assert ": not on this machine: " in done.stderr
