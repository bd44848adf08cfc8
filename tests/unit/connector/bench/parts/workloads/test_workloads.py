"""The workload benchmark without an engine: its shape, its load, its figures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from kvtier_common.benchmarks import Workload, p90
from kvtier_connector.bench.parts.workloads.figures import (
    Figures,
    compare,
    compare_requests,
    figures,
    guide_percent,
    side,
)
from kvtier_connector.bench.parts.workloads.load import Piece, RoundServed, Served, constant_concurrency
from kvtier_connector.bench.parts.workloads.on_cpu import requests_differing
from kvtier_connector.bench.parts.workloads.rows import rows
from kvtier_connector.bench.parts.workloads.shape import (
    IN_BLOCKS,
    IN_GB,
    Scaling,
    kv_bytes_per_token,
    prompts,
)

SMALL = Workload(
    groups=3, prompts_per_group=4, system_tokens=20, question_tokens=5, output_tokens=2, concurrency=3
)


@pytest.mark.parametrize(
    ("scaling", "system_tokens", "over_device", "over_both"),
    [
        (IN_BLOCKS, 30_000, 45 * 30_000 / (8 * 9_271 * 16), 45 * 30_000 / (8 * (9_271 + 41_000) * 16)),
        (IN_BLOCKS, 8_000, 45 * 8_000 / (8 * 9_271 * 16), 45 * 8_000 / (8 * (9_271 + 41_000) * 16)),
        (IN_GB, 30_000, 45 * 30_000 * 0.0002 / (8 * 24.3), 45 * 30_000 * 0.0002 / (8 * 124.3)),
    ],
)
def test_system_prompts_fill_the_same_share_of_the_caches(
    scaling: Scaling, system_tokens: int, over_device: float, over_both: float
) -> None:
    high = system_tokens == scaling.high_system_tokens
    workload = scaling.high_cache() if high else scaling.low_cache()
    ratios = scaling.ratios(workload)
    assert ratios["system_prompts_over_device"] == pytest.approx(over_device, rel=0.01)
    assert ratios["system_prompts_over_device_and_cpu"] == pytest.approx(over_both, rel=0.01)
    assert (over_device > 1, over_both < 1) == (high, True)


def test_undivided_and_for_all_engines_it_is_the_guides() -> None:
    whole = replace(IN_BLOCKS, engines=1, divisor=1)
    assert whole.high_cache() == Workload(
        groups=45,
        prompts_per_group=10,
        system_tokens=30_000,
        question_tokens=256,
        output_tokens=1024,
        concurrency=45,
    )
    assert whole.low_cache() == replace(whole.high_cache(), system_tokens=8_000)
    assert (whole.device_tokens(), whole.tier_tokens()) == (148_336, 656_000)
    assert whole.step_limit_tokens() == 8_192


def test_prompts_share_what_their_group_shares_and_nothing_else() -> None:
    asked = prompts(SMALL, "a")
    starts = Counter(tuple(ids[: SMALL.system_tokens]) for ids in asked)
    assert sorted(starts.values()) == [4, 4, 4]
    assert len({tuple(ids) for ids in asked}) == SMALL.requests
    assert {len(ids) for ids in asked} == {SMALL.prompt_tokens}
    groups = [tuple(ids[: SMALL.system_tokens]) for ids in asked]
    assert groups != sorted(groups, key=groups.index), "the groups are not mixed"


def test_prompts_are_the_same_for_the_same_round_only() -> None:
    assert prompts(SMALL, "a") == prompts(SMALL, "a")
    other = {tuple(ids[: SMALL.system_tokens]) for ids in prompts(SMALL, "b")}
    assert not other & {tuple(ids[: SMALL.system_tokens]) for ids in prompts(SMALL, "a")}


class Stepper:
    """Gives every request under way one token a step, of three; a step takes a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.under_way: dict[int, int] = {}
        self.order: list[list[int]] = []
        self.widest: list[int] = []

    def add(self, number: int, prompt: list[int]) -> None:
        assert number == len(self.order)
        self.order.append(prompt)
        self.under_way[number] = 0

    def step(self) -> Iterable[Piece]:
        self.widest.append(len(self.under_way))
        self.now += 1
        for number in sorted(self.under_way, reverse=True):
            self.under_way[number] += 1
            # A request's first step computes a part of its prompt, and gives nothing.
            tokens = [] if self.under_way[number] == 1 else [number]
            last = self.under_way[number] == 3
            if last:
                del self.under_way[number]
            yield Piece(number, tokens, last, cached=7)


def test_a_load_keeps_its_number_of_requests_under_way() -> None:
    engine = Stepper()
    asked = [[number] for number in range(5)]
    served = constant_concurrency(engine, asked, 2, clock=lambda: engine.now)
    assert engine.order == asked
    assert engine.widest == [2] * 6 + [1] * 3
    assert served == [Served(ttft_s=2, e2e_s=3, cached=7, tokens=[number] * 2) for number in range(5)]


def test_more_room_than_requests() -> None:
    engine = Stepper()
    assert len(constant_concurrency(engine, [[1]], 4, clock=lambda: engine.now)) == 1


ROUND = RoundServed(
    seconds=4.0,
    requests=[
        Served(ttft_s=float(number), e2e_s=number + 10.0, cached=10, tokens=[1, 2])
        for number in (3, 1, 2, 5, 4, 6, 8, 7, 9, 12, 10, 11)
    ],
    loaded_bytes=600.0,
)


def test_figures_of_a_round() -> None:
    assert figures(SMALL, ROUND, token_bytes=4) == Figures(
        mean_ttft_s=6.5,
        p90_ttft_s=11.0,
        mean_e2e_s=16.5,
        p90_e2e_s=21.0,
        output_tokens_per_s=6.0,
        total_tokens_per_s=(12 * 25 + 24) / 4,
        hit_rate=120 / 300,
        tier_hit_rate=150 / 300,
    )


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (9, 9), (10, 9), (11, 10), (60, 54)])
def test_p90_is_a_value_that_was_seen(count: int, expected: int) -> None:
    assert p90(list(range(count, 0, -1))) == expected


def test_sides_are_compared_round_by_round() -> None:
    one = figures(SMALL, ROUND, token_bytes=4)
    off = [replace(one, mean_ttft_s=seconds) for seconds in (1.0, 2.0, 4.0)]
    on = [replace(one, mean_ttft_s=seconds) for seconds in (0.5, 1.5, 1.0)]
    ratio = compare(on, off)["mean_ttft_s"]
    assert ratio == {"ratio": 0.5, "ratio_ci95": (0.25, 0.75), "percent": -50.0}
    assert side(off)["mean_ttft_s"] == {"median": 2.0, "spread": (1.0, 4.0)}
    assert " ".join(side(off)) == (
        "mean_ttft_s p90_ttft_s mean_e2e_s p90_e2e_s output_tokens_per_s total_tokens_per_s "
        "hit_rate tier_hit_rate"
    )
    assert "hit_rate" not in compare(on, off)


def test_requests_are_compared_with_themselves() -> None:
    slow = replace(
        ROUND, requests=[replace(each, ttft_s=each.ttft_s * 2, e2e_s=1e6) for each in ROUND.requests]
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


def test_answers_are_compared_request_by_request() -> None:
    assert requests_differing([[[1, 2], [3]], [[1, 2], [3]]]) == 0
    assert requests_differing([[[1, 2], [3], [4]], [[1, 2], [3], [5]], [[1, 9], [3], [5]]]) == 2


def test_keys_and_values_of_all_layers() -> None:
    llama = {"num_hidden_layers": 8, "num_attention_heads": 12, "hidden_size": 768}
    assert kv_bytes_per_token(llama | {"num_key_value_heads": 2, "head_dim": 32}, 4) == 2 * 8 * 2 * 32 * 4
    assert kv_bytes_per_token(llama, 2) == 2 * 8 * 768 * 2


def test_rows_say_what_was_measured_beside_what_and_the_limit() -> None:
    one = figures(SMALL, ROUND, token_bytes=4)
    sides = {
        "with": side([replace(one, mean_ttft_s=3.25, hit_rate=0.8)]),
        "device_cache_alone": side([one]),
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
