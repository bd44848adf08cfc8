from itertools import pairwise
from pathlib import Path

import pytest
from yaml import safe_load

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.demo.prompts import ModelShape, corpus, documents, model_config
from kvtier_operator.runtime.demo.report import dot_plot
from kvtier_operator.runtime.demo.tier import (
    RESOURCE_PATH,
    Kind,
    Repetitions,
    Sample,
    TierResult,
    fit_resource,
    plan_rounds,
    repetitions,
)
from kvtier_operator.runtime.measure import Answer, Samples, seconds
from kvtier_operator.runtime.metrics import EngineMetrics

PROMPT_TOKENS = 1000
EXAMPLE = Path("docs/user-guide/examples/demo.yaml")


def answer(text: str = "a b c", ttft_s: float = 1.0) -> Answer:
    return Answer(ttft_s, ttft_s + 1, text, PROMPT_TOKENS, 3)


def sample(kind: Kind, ttft_s: float = 1.0, text: str = "a b c", *, device: int = 0, cpu: int = 0) -> Sample:
    served = EngineMetrics(prompt_tokens=PROMPT_TOKENS, cached_tokens={"device": device, "cpu": cpu})
    return Sample(kind, 0, answer(text, ttft_s), served)


def result(**outputs: str) -> TierResult:
    samples = (
        sample(Kind.COLD, 12.0),
        sample(Kind.OFF, 12.5, outputs.get("off", "a b c")),
        sample(Kind.OFF_DEVICE_HIT, 0.09, outputs.get("cached", "a b c"), device=990),
        sample(Kind.WARM, 0.11, outputs.get("warm", "a b c"), cpu=990),
        sample(Kind.DEVICE_HIT, 0.10, outputs.get("hit", "a b c"), device=990),
    )
    return TierResult(samples, Samples.of([0.03]))


def test_documents_are_disjoint_and_in_order() -> None:
    text = "0123456789"
    assert documents(text, list(range(10)), 3, 3) == ("012", "345", "678")
    assert documents(text, list(range(10)), 5, 2) == ("01", "23", "45", "67", "89")


def test_a_text_too_short_for_the_documents() -> None:
    with pytest.raises(RuntimeFailedError, match="5 documents of 3 need 15"):
        documents("0123456789", list(range(10)), 5, 3)


def test_the_text_is_long_prose_and_always_the_same() -> None:
    assert len(corpus()) > 400_000
    assert corpus() == corpus()


def test_the_default_model_costs_8192_bytes_a_token() -> None:
    config = model_config(ModelShape())
    assert 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"] * 4 == 8192


def test_with_the_tier_off_every_repetition_follows_another_document() -> None:
    order = plan_rounds(documents=5, rounds=3, off_repeats=5)
    off = [document for kind, document in order if kind is Kind.OFF]
    assert off == [0, 1, 0, 1, 0, 1, 0]
    assert [kind for kind, _ in order].count(Kind.OFF_DEVICE_HIT) == 5


def test_every_warm_query_follows_another_document_and_every_hit_its_own() -> None:
    order = [step for step in plan_rounds(5, 3, 5) if step[0] not in {Kind.OFF, Kind.OFF_DEVICE_HIT}]
    assert [kind for kind, _ in order].count(Kind.WARM) == 15
    for (_, before), (kind, document) in pairwise(order):
        assert (before == document) == (kind is Kind.DEVICE_HIT)


def test_figures() -> None:
    figures = result().to_json()["query_twice"]
    assert figures["prompt_tokens"] == PROMPT_TOKENS
    assert figures["cold_ttft_s"] == 12.0
    assert figures["off_ttft_s"] == 12.5
    assert figures["speedup"] == pytest.approx(12.0 / 0.11)
    assert figures["over_device_hit"] == pytest.approx(1.1)
    assert figures["outputs_equal"] is True


@pytest.mark.parametrize(
    "outputs", [{"warm": "a b d"}, {"off": "x b c"}, {"hit": "a b d"}, {"cached": "a x c"}]
)
def test_an_output_that_differs_shows(outputs: dict[str, str]) -> None:
    assert not result(**outputs).outputs_equal


@pytest.mark.parametrize(
    ("cold_s", "left_s", "expected"),
    [
        (12.0, 240.0, Repetitions(documents=5, rounds=3, off_repeats=5)),
        (24.0, 200.0, Repetitions(documents=3, rounds=5, off_repeats=2)),
        (45.0, 190.0, Repetitions(documents=2, rounds=8, off_repeats=1)),
        (500.0, -10.0, Repetitions(documents=2, rounds=8, off_repeats=1)),
    ],
)
def test_a_slow_machine_repeats_less(cold_s: float, left_s: float, expected: Repetitions) -> None:
    assert repetitions(cold_s, left_s) == expected


@pytest.mark.parametrize("left_s", [100.0, 150.0, 200.0, 250.0])
def test_what_is_computed_fits_in_the_time(left_s: float) -> None:
    wanted = repetitions(20.0, left_s)
    order = plan_rounds(wanted.documents, wanted.rounds, wanted.off_repeats)
    computed = [step for step in order if step[0] in {Kind.COLD, Kind.OFF}]
    assert 25.0 * (len(computed) - 1) <= max(left_s, 25.0 * 4)
    assert wanted.samples == len(order) - 2


@pytest.mark.parametrize(
    ("kind", "device", "cpu"),
    [
        (Kind.WARM, 990, 0),
        (Kind.WARM, 0, 500),
        (Kind.COLD, 0, 990),
        (Kind.DEVICE_HIT, 0, 990),
        (Kind.OFF, 990, 0),
    ],
)
def test_a_prefix_from_elsewhere_is_no_result(kind: Kind, device: int, cpu: int) -> None:
    with pytest.raises(RuntimeFailedError, match=f"a {kind} query had"):
        sample(kind, device=device, cpu=cpu).verify()


def test_a_prefix_from_where_it_should_be() -> None:
    for sample in result().samples:
        sample.verify()


def test_the_resource_fits_any_model_and_the_example_is_the_demos() -> None:
    resource = parse_resource(safe_load(RESOURCE_PATH.read_text()), "demo")
    assert fit_resource(resource, "kvtier/random-llama-76m", 15_500, 8192) == resource
    other = fit_resource(resource, "other", 15_500, 16 * 8192).spec
    assert other.engine.kv_cache_memory is not None
    assert other.engine.kv_cache_memory.bytes == 16 * 123 * 1024**2
    assert EXAMPLE.read_text() == RESOURCE_PATH.read_text()


def test_the_plot_places_equal_factors_at_equal_distances() -> None:
    plot = dot_plot({"a": [0.1, 0.1], "b": [1.0], "c": [10.0]})
    x = [row.median_x for row in plot.rows]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1])
    assert all(plot.left <= dot.x <= plot.right for row in plot.rows for dot in row.dots)
    assert [tick.label for tick in plot.ticks if tick.major] == ["100 ms", "1.0 s", "10.0 s"]


def test_times_for_readers() -> None:
    assert [seconds(time) for time in (0.0774, 0.999, 1.0, 12.06)] == ["77 ms", "999 ms", "1.0 s", "12.1 s"]
