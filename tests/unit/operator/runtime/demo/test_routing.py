"""The demo's second part: what is asked, what it is asked of, and what the report says of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.operator.runtime.demo.test_tier import PROMPT_TOKENS, result
from yaml import safe_load

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.runtime.demo.prompts import ModelShape, Questions, model_config
from kvtier_operator.runtime.demo.report import Report, routing_table
from kvtier_operator.runtime.demo.routing import (
    RoutingLoad,
    RoutingResult,
    Way,
    WayFigures,
    fit_routing_resource,
    fitting_load,
    in_one_line,
    longer_tails,
    routing_rows,
)
from kvtier_operator.runtime.demo.sharing import SharingResult, Source
from kvtier_operator.runtime.demo.tier import RESOURCE_PATH, Facts
from kvtier_operator.runtime.measure import Answer

OBSERVED = Observed(model_config=model_config(ModelShape()))
FACTS = Facts(2, 8 << 30, "a processor", "0.32.0", "0.1.0", 20.0, 200.0, 0.5, 2.0)
BENCH: dict[str, Any] = {
    "seconds": 20.0,
    "ttft_s": [0.1, 2.0],
    "ttft_mean_s": 1.05,
    "ttft_p90_s": 2.0,
    "e2e_mean_s": 1.5,
    "e2e_p90_s": 2.5,
    "tokens_per_s": 2800.0,
    "hit_rate": {"device": 0.25, "tier": 0.5},
    "engine_share": [0.5, 0.5],
    "output_tokens_per_s": 14.0,
}


def demo_resource() -> KVCacheTier:
    return parse_resource(safe_load(RESOURCE_PATH.read_text()), "demo")


def figures(ttft_mean_s: float) -> WayFigures:
    return replace(WayFigures.from_bench({"shared_prefix": BENCH}), ttft_mean_s=ttft_mean_s)


def routing(**picks: int) -> RoutingResult:
    ways = {Way.OFF: figures(6.0), Way.TURNS: figures(3.0), Way.PICKER: figures(1.5)}
    return RoutingResult(RoutingLoad(), ways, picks or {"engine-0": 30, "engine-1": 31}, 30.0, 60.0)


def sharing() -> SharingResult:
    times = {Source.COMPUTED: 8.0, Source.SHARED: 0.4, Source.LATER: 0.5}
    answers = {source: (Answer(ttft_s, ttft_s, "a b c", 1000, 3),) for source, ttft_s in times.items()}
    return SharingResult(answers, 1000, 30.0, 20.0)


def test_what_three_ways_take() -> None:
    load = RoutingLoad(groups=2, prompts_per_group=3)
    # with the tier off all 6, in turns 2 x 2, with the picker 2; of 18 requests 6 find their system prompt
    assert load.cost_in_prompts == 6 + 4 + 2 + 0.25 * 6


def test_a_fast_machine_asks_ten_questions_and_a_slow_one_three() -> None:
    assert fitting_load(1_500, 0.001, 60.0) == RoutingLoad(prompts_per_group=10)
    least = RoutingLoad(prompts_per_group=3)
    assert fitting_load(1_500, 1_000.0, 60.0) == least
    assert fitting_load(1_500, 1.0, -5.0) == least


@pytest.mark.parametrize("prompt_s", [0.6, 0.9, 1.2])
def test_what_is_asked_fits_in_the_time_and_nothing_larger_does(prompt_s: float) -> None:
    load = fitting_load(1_500, prompt_s, 60.0)
    assert load.cost_in_prompts * prompt_s <= 60.0
    larger = RoutingLoad(prompts_per_group=load.prompts_per_group + 1)
    assert larger.cost_in_prompts * prompt_s > 60.0


def test_the_arguments_say_what_the_load_is() -> None:
    arguments = RoutingLoad(groups=4, prompts_per_group=5).arguments()
    assert dict(zip(arguments[::2], arguments[1::2], strict=True)) == {
        "--num-groups": "4",
        "--prompts-per-group": "5",
        "--system-prompt-len": "1500",
        "--question-len": "32",
        "--output-len": "8",
        "--concurrency": "4",
    }


def test_a_device_holds_two_prompts_and_the_tier_all() -> None:
    load = RoutingLoad()
    plan = make_plan(fit_routing_resource(demo_resource(), "m", load, 8192), OBSERVED)
    assert not plan.rejected
    assert plan.resource.spec.replicas == 2
    assert plan.tiers.gpu is not None
    longest = plan.resource.spec.engine.max_model_len
    assert longest is not None
    assert 2 * longest <= plan.tiers.gpu.tokens < 3 * longest
    assert load.groups * 12 * 128 > 2 * plan.tiers.gpu.tokens, "the device caches hold all"
    # each way on these engines has its own system prompts; of a question at most two blocks are its own
    needed = 2 * (load.groups * 12 + load.requests * 2) * 128
    assert needed <= plan.tiers.cpu.tokens


def test_system_prompts_are_beginnings_of_the_documents() -> None:
    asked = Questions(("aabb", "ccdd"), 100, until_s=1150.0)
    assert asked.shorten(50, 1300.0) == Questions(("aa", "cc"), 50, 1300.0)


@pytest.mark.parametrize("missing", ["ttft_s", "hit_rate", "seconds", "engine_share"])
def test_a_bench_without_figures_is_no_result(missing: str) -> None:
    incomplete = {name: value for name, value in BENCH.items() if name != missing}
    with pytest.raises(RuntimeFailedError, match=missing):
        WayFigures.from_bench({"shared_prefix": incomplete})


def test_a_bench_that_knew_no_hit_rate_is_no_result() -> None:
    with pytest.raises(RuntimeFailedError, match="wrote no figures"):
        WayFigures.from_bench({"shared_prefix": {**BENCH, "hit_rate": None}})


def test_requests_that_the_picker_did_not_choose_for_are_no_result() -> None:
    routing().verify()
    with pytest.raises(RuntimeFailedError, match="of 60 requests the picker chose the engine of 12"):
        routing(first=5, second=7).verify()


def test_the_ways_side_by_side() -> None:
    found = dict(routing_rows(routing()))
    assert found["mean TTFT"] == ("6.0 s", "3.0 s", "1.5 s")
    assert found["found in the CPU tier"] == ("50%",) * 3
    assert found["computed"] == ("25%",) * 3
    assert in_one_line(routing()).endswith("3.0 s with tier on, in turns; 1.5 s with tier on, picker")
    assert [column.header for column in routing_table(routing()).columns[1:]] == [str(way) for way in Way]


def test_a_tail_that_got_longer_is_explained_and_others_are_not() -> None:
    assert longer_tails(routing()) == ""
    shown = routing()
    turns = replace(shown.ways[Way.TURNS], ttft_p90_s=7.0)
    remark = longer_tails(replace(shown, ways={**shown.ways, Way.TURNS: turns}))
    assert "7.0 s with tier on, in turns, 2.0 s with tier off" in remark
    assert "Of 60 requests P90 is about the 6 slowest" in remark


def test_a_busy_machine_is_told_of(tmp_path: Path) -> None:
    plan = make_plan(demo_resource(), OBSERVED)
    busy = replace(FACTS, load_before=20.0)
    assert FACTS.load_note == ""
    _, page = Report(result(), routing(), sharing(), busy, plan, "a model").write(tmp_path)
    assert "20.0 processes wanted its 2 cores" in page.read_text()


def test_names_in_the_report_are_what_people_read(tmp_path: Path) -> None:
    plan = make_plan(demo_resource(), OBSERVED)
    path, _ = Report(result(), routing(), sharing(), FACTS, plan, "a model").write(tmp_path)
    document = json.loads(path.read_text())
    assert " ".join(document["machine"]) == (
        "cores memory_bytes processor vllm kvtier start_s measure_s load_before load_after"
    )
    assert " ".join(document["routing"]["load"]) == (
        "groups prompts_per_group system_tokens question_tokens output_tokens concurrency"
    )
    assert " ".join(document["routing"]["ways"]["tier on, picker"]) == (
        "seconds ttft_s ttft_mean_s ttft_p90_s e2e_mean_s e2e_p90_s tokens_per_s "
        "device_hit_rate tier_hit_rate engine_share"
    )


def test_the_report_has_all_parts(tmp_path: Path) -> None:
    plan = make_plan(demo_resource(), OBSERVED)
    paths = Report(result(), routing(), sharing(), FACTS, plan, "a <model>").write(tmp_path)
    document = json.loads(paths[0].read_text())
    assert document["query_twice"]["prompt_tokens"] == PROMPT_TOKENS
    assert document["routing"]["load"]["prompts_per_group"] == 10
    assert document["routing"]["ways"]["tier on, picker"]["tier_hit_rate"] == 0.5
    assert document["routing"]["turns_over_picker"] == 2.0
    assert document["routing"]["off_over_picker"] == 4.0
    assert document["sharing"]["speedup"] == 20.0
    assert document["sharing"]["outputs_equal"]
    page = paths[1].read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == page.count("</svg>") == 3
    assert page.count('<circle class="dot"') == 5 + 2 * 3 + 3
    assert "<td>mean TTFT</td>" in page
    assert "is 114 times faster with the CPU tier than without" in page
    assert document["query_twice"]["off_over_warm"] == pytest.approx(12.5 / 0.11)
    assert "a &lt;model&gt;" in page
