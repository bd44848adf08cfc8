import json

import pytest
from click.testing import CliRunner
from tests.unit.operator.api.schema.test_field_explained import everything

from kvtier_operator.api.schema.reference import explain_field
from kvtier_operator.cli.explain import explain, field_screen

AT_80 = """\
spec.tiers.cpu.memlock (kvtier.dev/v1alpha1)
  object, default {"policy": "Prefer"}
  Locking this tier in memory.

fields
  policy  Require | Prefer | Never, default Prefer
      Require refuses to start where the memory cannot be locked, and runs as
      root with IPC_LOCK; Prefer, the default, locks what it may without rights
      and says what it got; Never locks nothing: copies from and to a GPU are
      then slower.
"""
AT_120 = """\
spec.tiers.cpu.memlock (kvtier.dev/v1alpha1)
  object, default {"policy": "Prefer"}
  Locking this tier in memory.

fields
  policy  Require | Prefer | Never, default Prefer
      Require refuses to start where the memory cannot be locked, and runs as root with IPC_LOCK; Prefer, the default,
      locks what it may without rights and says what it got; Never locks nothing: copies from and to a GPU are then
      slower.
"""  # noqa: E501 - 120 columns


@pytest.mark.parametrize(("columns", "text"), [(80, AT_80), (120, AT_120)])
def test_as_wide_as_the_terminal(columns: int, text: str) -> None:
    shown = CliRunner(env={"COLUMNS": str(columns)}).invoke(explain, ["spec.tiers.cpu.memlock"])
    assert shown.stdout == text


def test_every_field_fits() -> None:
    for field in everything():
        for columns in (40, 80):
            assert max(map(len, field_screen(field, columns).splitlines())) <= columns


def test_all_fields_below_one() -> None:
    shown = CliRunner().invoke(explain, ["tiers.cpu", "--recursive"]).stdout
    _, fields = shown.split("\nfields\n")
    assert "  capacity  quantity, required\n" in fields
    assert "\n  memlock  object" in fields
    assert "\n    policy  Require | Prefer | " in fields
    assert "Memory for the prefix cache" not in fields
    assert (
        max(map(len, field_screen(explain_field("", recursive=True), 40, recursive=True).splitlines())) <= 40
    )


def test_the_resource_itself() -> None:
    shown = CliRunner().invoke(explain, [])
    assert shown.stdout.startswith("KVCacheTier (kvtier.dev/v1alpha1)\n")
    for name in ("spec", "status", "metadata"):
        assert f"\n  {name}  object" in shown.stdout


def test_for_a_program() -> None:
    result = json.loads(CliRunner().invoke(explain, ["spec.replicas", "-o", "json"]).stdout)
    assert result == {
        "path": "spec.replicas",
        "type": "integer",
        "required": False,
        "default": 1,
        "bounds": "0 to 10,000.",
        "description": explain_field("spec.replicas").description,
        "rules": [],
        "fields": [],
    }


def test_a_shell_completes_paths() -> None:
    [argument] = [each for each in explain.params if each.name == "field"]
    context = explain.make_context("explain", [], resilient_parsing=True)
    assert [each.value for each in argument.shell_complete(context, "spec.tiers.c")] == ["spec.tiers.cpu"]
    assert "spec.engine" in [each.value for each in argument.shell_complete(context, "spec.e")]
