"""The report that a person reads."""

import json
import re
import shlex

import pytest
from tests.cases.kvcachetier import DISK
from tests.cases.planning import resource

from kvtier_common.terminal.say import style_text
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.explain import bar, explain
from kvtier_operator.planning.units import GIB


@pytest.mark.parametrize(
    ("value", "whole", "drawn"),
    [(8, 8, "████"), (4, 8, "██"), (1, 32, "▏"), (5, 32, "▋"), (0, 8, ""), (1, 10**9, "▏"), (0, 0, "")],
)
def test_bars_are_drawn_to_an_eighth_of_a_cell(value: int, whole: int, drawn: str) -> None:
    assert bar(value, whole, cells=4) == drawn.ljust(4)


def text(**spec: object) -> str:
    return explain(make_plan(resource(**spec), Observed()))  # type: ignore[arg-type]


def test_each_number_says_how_it_came_about() -> None:
    report = text(engine={"tensorParallelSize": 2, "kvCacheMemory": "20Gi"})
    assert re.search(r"KV bytes per token +262,144 B +2 x 64 layers x 8 heads x 128 x 2 B", report)
    assert re.search(r"CPU tier tokens +409,600 +6,400 chunks x 64 tokens", report)
    assert re.search(r"CPU tier bytes per rank +50 GiB +100 GiB / 2 ranks", report)
    assert re.search(r"cpu +100 GiB +107,374,182,400 +50 GiB +409,600", report)
    assert re.search(r"cpu prefix entries +6,400 +ceil\(409,600 tokens / 64 tokens an entry\)", report)


def test_what_nothing_is_known_of_is_not_told_as_passed() -> None:
    report = text()
    assert re.search(r"^  \? not known yet +device-cache, tier-larger-than-device$", report, re.MULTILINE)
    assert not re.search("✓ (device-cache|tier-larger-than-device)", report)
    assert re.search(r"checks: \d+ passed, 2 not known", report)
    known = text(engine={"gpu": "h100", "tensorParallelSize": 2})
    assert re.search("✓ device-cache", known)
    assert "not known yet" not in known


def test_buffers_that_the_tier_covers_are_told() -> None:
    streamed = {"gpu": "h100", "tensorParallelSize": 2, "extraArgs": ["--load-format=runai_streamer"]}
    report = " ".join(text(engine=streamed).split())
    assert "streamed through buffers of 74.51 GiB (2 ranks), less than tiers and caches take" in report
    assert "through buffers" not in text(cpu="1Gi", engine=streamed), "a line of the pod's memory"


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("backend", ["KVTier", "Native"])
def test_as_wide_as_the_terminal(backend: str, columns: int) -> None:
    plan = make_plan(
        resource(
            backend=backend, tiers={"disk": DISK}, engine={"tensorParallelSize": 2, "gpuMemory": "80Gi"}
        ),
        Observed(),
    )
    report = explain(plan, columns=columns)
    assert max(map(len, report.splitlines())) <= columns
    assert ("107,374,182,400" in report.partition("engine:")[0]) == (columns >= 100)


@pytest.mark.parametrize(("columns", "width"), [(10, 80), (400, 120)])
def test_no_narrower_and_no_wider_than_can_be_read(columns: int, width: int) -> None:
    plan = make_plan(resource(), Observed())
    assert explain(plan, columns=columns) == explain(plan, columns=width)


def test_devices_that_are_claimed_are_told() -> None:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "two-h100"}]
    text = explain(make_plan(resource(engine={"resourceClaims": claims}), Observed()))
    assert re.search(r"^  claim gpus +two-h100$", text, re.MULTILINE)
    assert "nvidia.com/gpu" not in text


def test_every_memory_line_has_a_bar_and_a_reason() -> None:
    plan = make_plan(resource(), Observed())
    report = explain(plan)
    for line in plan.budget.memory:
        row = next(row for row in report.splitlines() if row.startswith(f"  {line.what}"))
        assert f"{line.bytes:,}" in row
        assert re.search(r"[█▏▎▍▌▋▊▉]", row)
        assert line.why.split()[0] in row


def test_figures_stay_in_columns_whatever_a_line_is_called() -> None:
    report = text(tiers={"cpu": {"capacity": "1000Gi"}})
    assert re.search(
        r"^  CPU tier, page-locked +1,000 GiB +1,073,741,824,000  [█▏▎▍▌▋▊▉]", report, re.MULTILINE
    )
    assert max(len(line) for line in report.splitlines()) <= 100


def test_refusals_come_first() -> None:
    report = text(engine={"extraArgs": ["--port", "1"]}, router={"replicas": 2})
    marks = re.findall(r"^  ([✗!✓]) ", report, re.MULTILINE)
    assert marks == sorted(marks, key="✗!✓".index)
    assert "1 rejected, 1 to look at ─" in report


def test_colours_only_where_asked_for() -> None:
    plan = make_plan(resource(router={"replicas": 2}), Observed())
    coloured = style_text(explain(plan, colour=True), colour=True)
    assert "\x1b[33m" in coloured
    assert re.sub(r"\x1b\[[0-9]+m", "", coloured) == explain(plan)


def test_a_tier_that_is_not_known_is_a_question_mark() -> None:
    assert re.search(r"gpu +\? +\? +\? +\?", text())
    assert re.search(r"disk +- +- +- +-", text())


def test_the_command_can_be_copied_into_a_shell() -> None:
    plan = make_plan(resource(), Observed())
    report = explain(plan)
    command = report[report.index("  vllm serve") : report.index("  KVTIER_CONTROL")]
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["vllm", "serve"]
    for word, argument in zip(words[2:], plan.engine.args, strict=True):
        assert word == argument or json.loads(word) == json.loads(argument)


@pytest.mark.parametrize(
    ("image", "router"),
    [("ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0", {}), ("mine:1", {"image": "mine:1"})],
)
def test_the_pickers_image_and_what_its_pods_ask_for(image: str, router: dict[str, object]) -> None:
    resources = {"requests": {"cpu": "250m"}, "limits": {"cpu": "3", "memory": "2Gi"}}
    report = text(router={"replicas": 2, "resources": resources, **router})
    router_section = report[report.index("\nrouter: llm-d") :]
    assert f"  image   {image}\n" in router_section
    for row in (
        r"picker pods +2",
        r"picker cpu request +250m",
        r"picker memory request +896Mi",
        r"picker cpu limit +3",
        r"picker memory limit +2Gi  1.25 GiB with a full index",
    ):
        assert re.search(rf"^  {row}$", router_section, re.MULTILINE), row


@pytest.mark.parametrize(
    ("model", "source"),
    [
        ({"name": "Qwen/Qwen3-32B"}, r"61\.02 GiB  of one engine, all ranks together; the catalogue"),
        ({"name": "Qwen/Qwen3-32B", "weights": "30Gi"}, r"30 GiB  .*; spec\.model\.weights"),
        ({"name": "a/b", "geometry": {"kvBytesPerToken": 1000}}, r"\?  not known: spec\.model\.weights"),
    ],
    ids=str,
)
def test_the_size_of_the_weights_says_where_it_is_from(model: dict[str, object], source: str) -> None:
    document = resource().manifest()
    document["spec"]["model"] = model
    report = explain(make_plan(parse_resource(document, "case"), Observed()))
    assert re.search(rf"^  weights bytes +{source}", report, re.MULTILINE)


def test_weights_that_lie_beside_a_config() -> None:
    config = {"num_hidden_layers": 8, "num_attention_heads": 12, "hidden_size": 768}
    observed = Observed(model_config=config, model_config_source="m/config.json", weights_bytes=GIB)
    report = explain(make_plan(resource("a/b"), observed))
    assert re.search(r"weights bytes +1 GiB  of .*; the weight", report)
