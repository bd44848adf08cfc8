"""The demo's second part: the real Envoy, picker and load, before engines that only count."""

import io
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from yaml import safe_load

from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.runtime.demo import routing
from kvtier_operator.runtime.demo.prompts import ModelShape, Questions, model_config
from kvtier_operator.runtime.demo.routing import (
    RoutingLoad,
    Way,
    fit_routing_resource,
    fitting_load,
    run_routing,
)
from kvtier_operator.runtime.demo.tier import RESOURCE_PATH
from kvtier_operator.runtime.session import RunOptions

PROGRAM = (sys.executable, str(Path(__file__).with_name("engine_program.py")))
GROUPS, QUESTIONS = 6, 3


@pytest.fixture
def plan() -> Plan:
    resource = parse_resource(safe_load(RESOURCE_PATH.read_text()), "demo")
    observed = Observed(model_config=model_config(ModelShape()))
    return make_plan(fit_routing_resource(resource, "m", RoutingLoad(), 8192), observed)


@pytest.fixture
def asked() -> Questions:
    """No time left: the least is asked."""
    return Questions(("warm up", "measure"), 1_500, time.monotonic())


async def test_three_ways_are_measured_and_the_picker_chose_in_the_last(
    plan: Plan, asked: Questions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "RunOptions", partial(RunOptions, program=PROGRAM))
    # one question at a time, so that a busy machine does not decide in which order they reach the picker
    monkeypatch.setattr(routing, "fitting_load", lambda *asked: replace(fitting_load(*asked), concurrency=1))
    said = io.StringIO()
    result = await run_routing(plan, tmp_path, asked, tmp_path / "logs", PlainConsole(file=said, width=200))
    assert (result.load.groups, result.load.prompts_per_group) == (GROUPS, QUESTIONS)
    off, turns, picker = (result.ways[way] for way in Way)
    # 1 - 1 / QUESTIONS at best: of five picks between two readings of the engines' queues one goes elsewhere
    assert 0.5 <= picker.hit_rate <= 1 - 1 / QUESTIONS + 1e-9
    assert off.tier_hit_rate == 0
    assert turns.tier_hit_rate + picker.tier_hit_rate > 0
    assert all(len(way.ttft_s) == GROUPS * QUESTIONS for way in (off, turns, picker))
    assert sum(result.picks.values()) == GROUPS * QUESTIONS + 1  # one /tokenize
    assert [line.partition("  ")[0] for line in said.getvalue().splitlines()[1:]] == [str(way) for way in Way]


async def test_an_engine_that_ends_ends_the_demo_and_says_why(
    plan: Plan, asked: Questions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (sys.executable, "-c", "raise SystemExit('no such model')")
    monkeypatch.setattr(routing, "RunOptions", partial(RunOptions, program=program))
    with pytest.raises(RuntimeFailedError, match="while it was starting; its log says:\n  no such model"):
        await run_routing(plan, tmp_path, asked, tmp_path / "logs", PlainConsole(file=io.StringIO()))
