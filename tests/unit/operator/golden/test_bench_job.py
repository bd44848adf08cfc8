"""Resources of input/ whose Job of `kvtier bench job` must be exactly output/<its name>/bench-job.yaml."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.operator.golden.written import check_written

from kvtier_operator.cli.bench.job import job

HERE = Path(__file__).parent
NAMES = (
    "cpu-device",
    "hugepages-memlock",
    "kvtier-disk",
    "kvtier-disk-host-path",
    "minimal",
)


@pytest.mark.parametrize("name", NAMES)
def test_prints_what_is_written(name: str, *, update_golden: bool) -> None:
    result = CliRunner().invoke(
        job, ["--no-hub", "-f", str(HERE / "input" / f"{name}.yaml")], catch_exceptions=False
    )
    assert result.exit_code == 0
    check_written(result.stdout, HERE / "output" / name / "bench-job.yaml", update=update_golden)


def test_no_output_without_its_name() -> None:
    assert {path.parent.name for path in (HERE / "output").glob("*/bench-job.yaml")} == set(NAMES)
