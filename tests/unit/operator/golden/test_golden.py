"""Each resource of input/ must render to exactly the objects of output/<its name>/objects.yaml.

After a change that is meant:  python -m pytest tests/unit/operator/golden --update-golden
"""

from pathlib import Path

import pytest
from tests.unit.operator.golden.written import check_written

from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.manifest import to_yaml
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.summary import summarise
from kvtier_operator.planning.verdict import Outcome

HERE = Path(__file__).parent
INPUTS = sorted((HERE / "input").glob("*.yaml"))
OUTPUTS = HERE / "output"
BACKENDS = [backend.name.lower().replace("_", "-") for backend in Backend]
SUMMARISED = (
    "minimal",
    "kvtier-kept",
    "cpu-device",
    "kvtier-disk",
    "kvtier-managed-store",
    "lmcache-mp-hugepages",
)
FLAVORS = ("llm-d", "gaie", "builtin")


def plan_of(path: Path) -> Plan:
    [(_, resource)] = load_resources([str(path)])
    return make_plan(resource, Observed())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_renders_what_is_written(path: Path, *, update_golden: bool) -> None:
    plan = plan_of(path)
    assert [check for check in plan.checks if check.outcome is Outcome.REJECT] == []
    rendered = to_yaml(build_objects(plan))
    check_written(rendered, OUTPUTS / path.stem / "objects.yaml", update=update_golden)


@pytest.mark.parametrize("name", SUMMARISED)
def test_sums_up_what_is_written(name: str, *, update_golden: bool) -> None:
    summary = summarise(plan_of(HERE / "input" / f"{name}.yaml"))
    check_written(summary, OUTPUTS / name / "summary.txt", update=update_golden)


def test_every_backend_with_every_flavor() -> None:
    assert {f"{backend}-{flavor}" for backend in BACKENDS for flavor in FLAVORS} <= {
        path.stem for path in INPUTS
    }


def test_no_output_without_input() -> None:
    assert {folder.name for folder in OUTPUTS.iterdir()} == {path.stem for path in INPUTS}
