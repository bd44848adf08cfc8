"""What `kvtier run` shows of an engine; its table is seen in tests/engine/runtime."""

from pathlib import Path

import pytest
from tests.cases.planning import plan_sizes, resource

from kvtier_common.tier import Tier
from kvtier_operator.planning.base.tier_plan import TiersPlan
from kvtier_operator.runtime.metrics import EngineMetrics
from kvtier_operator.runtime.process import Command, SupervisedProcess
from kvtier_operator.runtime.serve import plain_line
from kvtier_operator.runtime.session import EngineState, RunningEngine

DISK: dict[str, object] = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
METRICS = EngineMetrics(
    prompt_tokens=1000, cached_tokens={"device": 10, "cpu": 20, "disk": 30}, held_tokens={Tier.DISK: 640}
)


@pytest.fixture
def engine(tmp_path: Path) -> RunningEngine:
    process = SupervisedProcess(Command("engine-0", ("true",), {}), tmp_path / "log")
    return RunningEngine("engine-0", "http://here", process, EngineState.READY)


def planned(tiers: dict[str, object]) -> TiersPlan:
    return plan_sizes(resource(tiers=tiers))[0]


def test_a_disk_tier_is_shown(engine: RunningEngine) -> None:
    line = plain_line(engine, METRICS, planned(DISK))
    assert "from CPU 20, from disk 30, CPU tier of 409,600, disk tier 640 of 4,194,176, hit rate 6.0%" in line


def test_where_there_is_none_it_is_not(engine: RunningEngine) -> None:
    line = plain_line(engine, METRICS, planned({}))
    assert "disk" not in line
    assert "from CPU 20, CPU tier of 409,600" in line


def test_an_engine_that_has_said_nothing(engine: RunningEngine) -> None:
    assert plain_line(engine, None, planned(DISK)) == "engine-0: ready"
