"""The figures as a container's termination message: what is in it, and that it never is too long."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.bench.measure import LIMIT_BYTES, termination_message

ABOUT = {"kvtier": "0.1.0", "vllm": "0.33.0", "shape": "qwen3-8b", "device": "NVIDIA H100 80GB HBM3"}
SIDE = {"ready_s": 22.81234, "cold_s": 0.484321, "device_hit_s": 0.0507, "cpu_tier_s": 0.0997}
TTFT: dict[str, Any] = {
    "device": "NVIDIA H100 80GB HBM3",
    "prompt_tokens": 15_400,
    "repeats": 5,
    "turns": 2,
    "sides": {
        "none": {name: value for name, value in SIDE.items() if name != "cpu_tier_s"},
        "vllm": SIDE | {"spread_s": {"cold": [0.1, 0.2]}},
        "kvtier": SIDE,
    },
    "outputs_equal": True,
}


def figures(ttft_s: float) -> dict[str, Any]:
    names = ("mean_ttft_s", "p90_ttft_s", "mean_e2e_s", "p90_e2e_s", "total_tokens_per_s", "hit_rate")
    return {name: {"median": ttft_s, "spread": (ttft_s, ttft_s)} for name in names}


SECTION = {
    "requests_differing": 0,
    "sides": {"none": figures(1.18), "kvtier": figures(0.58)},
}
WORKLOADS = {"device": "x", "turns": 2, "high_cache": SECTION, "low_cache": SECTION}


def read(message: str) -> dict[str, Any]:
    assert len(message.encode()) <= LIMIT_BYTES
    assert "\n" not in message
    found: dict[str, Any] = json.loads(message)
    return found


def test_figures_of_a_gpu() -> None:
    found = read(termination_message({"ttft": TTFT, "workloads": WORKLOADS}, ABOUT))
    assert found.keys() == ABOUT.keys() | {"ttft", "workloads"}
    assert found["ttft"]["kvtier"] == {
        "ready_s": 22.81,
        "cold_s": 0.4843,
        "device_hit_s": 0.0507,
        "cpu_tier_s": 0.0997,
    }
    assert "cpu_tier_s" not in found["ttft"]["none"]
    high = found["workloads"]["high_cache"]
    assert high["kvtier"]["mean_ttft_s"] == 0.58
    assert high["requests_differing"] == 0


def test_parts_without_a_short_form_are_named() -> None:
    found = read(termination_message({"index": {}, "ttft": TTFT}, ABOUT))
    assert found["left_out"] == ["index"]
    assert "ttft" in found


def test_what_does_not_fit_is_named() -> None:
    many = {f"side {number}": SIDE for number in range(60)}
    found = read(termination_message({"ttft": TTFT | {"sides": many}, "workloads": WORKLOADS}, ABOUT))
    assert found["left_out"] == ["ttft"]
    assert "workloads" in found


def test_an_error_keeps_its_end_beside_what_was_measured() -> None:
    long = "the engine died: " + "x" * 10_000 + " out of memory"
    found = read(termination_message({"ttft": TTFT}, ABOUT, long))
    assert found["error"].endswith(" out of memory")
    assert found["ttft"]["kvtier"]["cpu_tier_s"] == 0.0997
    assert "error" not in read(termination_message({}, ABOUT))


@given(error=st.text(max_size=20_000), sides=st.integers(0, 80), workloads=st.booleans())
def test_it_always_fits(error: str, sides: int, *, workloads: bool) -> None:
    report = {"ttft": TTFT | {"sides": {f"side {number}": SIDE for number in range(sides)}}}
    message = termination_message(report | ({"workloads": WORKLOADS} if workloads else {}), ABOUT, error)
    assert bool(error) == ("error" in read(message))


@pytest.mark.parametrize("value", [float("inf"), 1e-12, 123456.789])
def test_numbers_have_four_digits(value: float) -> None:
    sides = {"kvtier": {"cold_s": value}}
    message = termination_message({"ttft": TTFT | {"sides": sides}}, ABOUT)
    assert len(message) <= LIMIT_BYTES
    assert json.loads(message)["ttft"]["kvtier"]["cold_s"] == float(f"{value:.4g}")
