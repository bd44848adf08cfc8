"""A new check is one file and its place in the list of checks."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

PACKAGE: Final = "kvtier_operator.planning.checks"
_CHECK: Final = """
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.verdict import CheckResult


@check("spec.replicas")
def toy(parts: CheckInput) -> CheckResult:
    return toy.warn("ToyFound", f"{parts.spec.replicas} replicas")
"""


def test_two_files(copy: Copied) -> None:
    copy.write("operator/kvtier_operator/planning/checks/toy.py", _CHECK)
    registry = "operator/kvtier_operator/planning/checks/__init__.py"
    copy.insert(registry, "\nCHECKS: Final", f"from {PACKAGE}.toy import toy\n")
    copy.insert(registry, "    model.architecture_known,\n", "    toy,\n")
    resource = "tests/unit/operator/golden/input/minimal.yaml"
    report = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", resource))
    assert [check["reason"] for check in report["checks"] if check["name"] == "toy"] == ["ToyFound"]
    assert "ToyFound" in copy.kvtier("plan", "--no-hub", "-f", resource)
    assert copy.changed() == {"operator/kvtier_operator/planning/checks/toy.py", registry}
