"""The workloads on a CPU, with the connector in and out: what is compared, and what is printed."""

from dataclasses import replace

from tests.bench.connector.workloads import compare_requests, guide_percent, rows

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench.load import RoundServed, Served
from kvtier_connector.bench.workloads import compare, round_figures, side_figures

ROUND = RoundServed(
    seconds=4.0,
    requests=[
        Served(ttft_s=float(number), e2e_s=number + 10.0, cached=10, tokens=[1, 2])
        for number in (3, 1, 2, 5, 4, 6, 8, 7, 9, 12, 10, 11)
    ],
    loaded_bytes=600.0,
)


SMALL_LOAD = Workload(
    groups=3, prompts_per_group=4, system_tokens=20, question_tokens=5, output_tokens=2, concurrency=3
)


def test_requests_are_compared_with_themselves() -> None:
    slow = replace(
        ROUND, requests=[replace(request, ttft_s=request.ttft_s * 2, e2e_s=1e6) for request in ROUND.requests]
    )
    slow.requests[3] = replace(slow.requests[3], ttft_s=1e6)  # a burst
    ratios = compare_requests([slow, ROUND, slow], [ROUND] * 3)
    assert ratios["request_ttft_s"] == {"ratio": 2.0, "ratio_ci95": (1.0, 2.0), "percent": 100.0}
    assert ratios["request_e2e_s"]["ratio"] > 1000


def test_the_guides_changes_are_those_it_prints() -> None:
    lmcache = guide_percent("high_cache")["lmcache"]
    assert round(lmcache["mean_ttft_s"], 1) == -27.8
    assert round(lmcache["p90_ttft_s"], 1) == -10.0
    assert round(lmcache["mean_e2e_s"], 1) == -18.5
    assert round(lmcache["p90_e2e_s"], 1) == -13.5
    assert round(lmcache["total_tokens_per_s"], 1) == 21.7
    vllm = guide_percent("high_cache")["vllm_offloading"]
    assert [round(percent, 1) for percent in vllm.values()] == [-25.6, -3.3, -18.3, -11.1, 21.3]


def test_rows_say_what_was_measured_beside_what_and_the_limit() -> None:
    one = round_figures(SMALL_LOAD, ROUND, token_bytes=4)
    sides = {
        "with": side_figures([replace(one, mean_ttft_s=3.25, hit_rate=0.8)]),
        "device_cache_alone": side_figures([one]),
        "ratio": compare([replace(one, mean_ttft_s=3.25)], [one]) | compare_requests([ROUND], [ROUND]),
    }
    section = {
        "shape": {"groups": 6, "system_tokens": 1000, "system_prompts_over_device": 1.137},
        "rounds": 3,
        "outputs_equal": True,
        "guide_percent": guide_percent("high_cache"),
        "kvtier": sides,
    }
    found = rows(
        {"high_cache": section, "high_cache_in_gb": section, "low_cache": section | {"empty": sides}}
    )
    assert found[0] == (
        "high-cache workload, 6 x 1000 tokens, 3 rounds",
        "outputs equal: True",
        "system prompts 1.14 of the device cache",
        "",
    )
    assert found[1] == (
        "  mean TTFT, tier over device cache alone",
        "-50.0 % (-50.0 to -50.0), 6.5 -> 3.25",
        "vLLM's own on H100 -25.6 %, LMCache -27.8 %",
        "below -27.8 %",
    )
    assert (found[2][0], found[2][3]) == (
        "  throughput, tier over device cache alone",
        "above +21.7 %",
    )
    assert found[3] == ("  TTFT of the median request over its own", "+0.0 % (+0.0 to +0.0)", "", "")
    assert found[5] == ("  share of prompt tokens cached", "0.800", "device cache alone 0.400", "")
    assert "here a connector that does nothing -50.0 %" in found[-5][2]
    assert found[-5][3] == "within 0.5 %"
    assert found[-2][2] == "a connector that does nothing +0.0 % (+0.0 to +0.0)"
    assert rows({"low_cache": section | {"empty": sides}}) == found[-6:]
