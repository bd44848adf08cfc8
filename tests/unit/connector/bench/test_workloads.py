"""The workloads without an engine: their shape, their load, which rounds the sides serve, and the figures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connector.bench.fake_life import fake_life

from kvtier_common.benchmarks import Workload, p90
from kvtier_connector.bench import comparison, workloads
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.load import (
    IN_BLOCKS,
    Piece,
    Round,
    RoundServed,
    Scaling,
    Served,
    constant_concurrency,
    kv_bytes_per_token,
    prompts,
)
from kvtier_connector.bench.workloads import (
    Figures,
    compare,
    over_caches,
    requests_differing,
    round_figures,
    rows,
    side_figures,
)

SMALL = Scaling(device_cache_tokens=148_336, tier_cache_tokens=656_000, divisor=100)


class FakeLoad:
    """Serves a round the faster the better its side, and answers one request with another token."""

    def __init__(self, transfer: dict[str, Any] | None) -> None:
        self.rounds: list[Round] = []
        self.rests = 0
        name = (transfer or {}).get("kv_connector")
        self.seconds = {None: 4.0, "OffloadingConnector": 3.0, "KVTierConnector": 2.0}[name]
        self._odd = name == "OffloadingConnector"

    def rest(self, timeout_s: float = 10) -> None:
        assert timeout_s > 0
        self.rests += 1

    def serve(self, asked: Round) -> RoundServed:
        self.rounds.append(asked)
        requests = [
            Served(ttft_s=self.seconds, e2e_s=2 * self.seconds, cached=50, tokens=[number, 7])
            for number in range(asked.workload.requests)
        ]
        if self._odd:
            requests[0].tokens[1] = 8
        return RoundServed(self.seconds, requests, loaded_bytes=0.0)


def loads(
    monkeypatch: pytest.MonkeyPatch, model: Path, sides: tuple[str, ...] = ("none", "vllm", "kvtier")
) -> tuple[Any, list[FakeLoad]]:
    engines: list[FakeLoad] = []
    monkeypatch.setattr(comparison, "bench_engine", fake_life(engines, FakeLoad))
    monkeypatch.setattr(workloads, "ask_round", lambda engine, asked: engine.serve(asked))
    report = workloads.compare_workloads(
        Comparison(model=model, device="H100", sides=sides),
        log=model / "x.log",
        say=lambda _line: None,
        rounds={"high_cache": 2, "low_cache": 1},
        scaling=SMALL,
    )
    return report, engines


def test_rounds_of_the_same_prompts_by_side(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, engines = loads(monkeypatch, model)
    high = report["high_cache"]
    assert (high["rounds"], high["requests"]) == (4, 240)
    assert (high["requests_differing"], report["low_cache"]["requests_differing"]) == (4, 2)
    assert [high["sides"][side]["mean_ttft_s"]["median"] for side in high["sides"]] == [4.0, 3.0, 2.0]
    assert high["ratio"].keys() == {"vllm", "kvtier"}
    assert high["ratio"]["kvtier"]["mean_ttft_s"]["percent"] == -50.0
    seeds = [[asked.seed for asked in engine.rounds] for engine in engines]
    assert (
        seeds[0]
        == seeds[1]
        == seeds[2]
        == [
            "high_cache 0 first",
            "high_cache 0 0",
            "high_cache 0 1",
            "low_cache 0 first",
            "low_cache 0 0",
        ]
    )
    assert not set(seeds[0]) & set(seeds[3])
    assert [asked.workload.requests for asked in engines[0].rounds] == [6, 60, 60, 6, 60]


def test_caches_are_in_the_guide_s_proportion(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = loads(monkeypatch, model)
    shape = report["high_cache"]["shape"]
    assert shape["system_prompts_over_device"] == pytest.approx(45 * 30_000 / (8 * 148_336), rel=0.01)
    assert report["high_cache"]["tier_tokens"] >= SMALL.tier_tokens()
    assert asdict(SMALL.high_cache()).items() <= shape.items()


def test_without_the_side_of_no_tier_there_is_no_ratio(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = loads(monkeypatch, model, sides=("vllm", "kvtier"))
    assert report["high_cache"]["ratio"] == {}
    assert len(rows(report)) == 2 * (1 + 2 * 2 + 1)


def test_rows_of_workloads(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = loads(monkeypatch, model)
    what, measured, beside, _ = zip(*rows(report), strict=True)
    assert what[0] == "high-cache workload, 6 x 300 tokens, 4 rounds"
    assert (measured[0], beside[0]) == (
        "answers that differ: 4 of 240",
        "system prompts 1.14 of the device cache",
    )
    assert what[1:4] == (
        "  mean TTFT, no tier",
        "  mean TTFT, vLLM's OffloadingConnector",
        "  mean TTFT, kvtier",
    )
    assert measured[1:4] == ("4", "3, -25.0 % (-25.0 to -25.0)", "2, -50.0 % (-50.0 to -50.0)")
    assert what[7] == "  share of prompt tokens cached"


SMALL_LOAD = Workload(
    groups=3, prompts_per_group=4, system_tokens=20, question_tokens=5, output_tokens=2, concurrency=3
)


@pytest.mark.parametrize(
    ("scaling", "system_tokens", "over_device", "over_both"),
    [
        (IN_BLOCKS, 30_000, 45 * 30_000 / (8 * 9_271 * 16), 45 * 30_000 / (8 * (9_271 + 41_000) * 16)),
        (IN_BLOCKS, 8_000, 45 * 8_000 / (8 * 9_271 * 16), 45 * 8_000 / (8 * (9_271 + 41_000) * 16)),
    ],
)
def test_system_prompts_fill_the_same_share_of_the_caches(
    scaling: Scaling, system_tokens: int, over_device: float, over_both: float
) -> None:
    high = system_tokens == 30_000
    workload = scaling.high_cache() if high else scaling.low_cache()
    ratios = over_caches(workload, device_tokens=scaling.device_tokens(), tier_tokens=scaling.tier_tokens())
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
    asked = prompts(SMALL_LOAD, "a")
    starts = Counter(tuple(ids[: SMALL_LOAD.system_tokens]) for ids in asked)
    assert sorted(starts.values()) == [4, 4, 4]
    assert len({tuple(ids) for ids in asked}) == SMALL_LOAD.requests
    assert {len(ids) for ids in asked} == {SMALL_LOAD.prompt_tokens}
    groups = [tuple(ids[: SMALL_LOAD.system_tokens]) for ids in asked]
    assert groups != sorted(groups, key=groups.index), "the groups are not mixed"


def test_prompts_are_the_same_for_the_same_round_only() -> None:
    assert prompts(SMALL_LOAD, "a") == prompts(SMALL_LOAD, "a")
    other = {tuple(ids[: SMALL_LOAD.system_tokens]) for ids in prompts(SMALL_LOAD, "b")}
    assert not other & {tuple(ids[: SMALL_LOAD.system_tokens]) for ids in prompts(SMALL_LOAD, "a")}


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
    served = constant_concurrency(engine.add, engine.step, asked, 2, clock=lambda: engine.now)
    assert engine.order == asked
    assert engine.widest == [2] * 6 + [1] * 3
    assert served == [Served(ttft_s=2, e2e_s=3, cached=7, tokens=[number] * 2) for number in range(5)]


def test_more_room_than_requests() -> None:
    engine = Stepper()
    assert len(constant_concurrency(engine.add, engine.step, [[1]], 4, clock=lambda: engine.now)) == 1


ROUND = RoundServed(
    seconds=4.0,
    requests=[
        Served(ttft_s=float(number), e2e_s=number + 10.0, cached=10, tokens=[1, 2])
        for number in (3, 1, 2, 5, 4, 6, 8, 7, 9, 12, 10, 11)
    ],
    loaded_bytes=600.0,
)


def test_figures_of_a_round() -> None:
    assert round_figures(SMALL_LOAD, ROUND, token_bytes=4) == Figures(
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
    one = round_figures(SMALL_LOAD, ROUND, token_bytes=4)
    off = [replace(one, mean_ttft_s=seconds) for seconds in (1.0, 2.0, 4.0)]
    on = [replace(one, mean_ttft_s=seconds) for seconds in (0.5, 1.5, 1.0)]
    ratio = compare(on, off)["mean_ttft_s"]
    assert ratio == {"ratio": 0.5, "ratio_ci95": (0.25, 0.75), "percent": -50.0}
    assert side_figures(off)["mean_ttft_s"] == {"median": 2.0, "spread": (1.0, 4.0)}
    assert " ".join(side_figures(off)) == (
        "mean_ttft_s p90_ttft_s mean_e2e_s p90_e2e_s output_tokens_per_s total_tokens_per_s "
        "hit_rate tier_hit_rate"
    )
    assert "hit_rate" not in compare(on, off)


def test_answers_are_compared_request_by_request() -> None:
    assert requests_differing([[[1, 2], [3]], [[1, 2], [3]]]) == 0
    assert requests_differing([[[1, 2], [3], [4]], [[1, 2], [3], [5]], [[1, 9], [3], [5]]]) == 2


def test_keys_and_values_of_all_layers() -> None:
    llama = {"num_hidden_layers": 8, "num_attention_heads": 12, "hidden_size": 768}
    assert kv_bytes_per_token(llama | {"num_key_value_heads": 2, "head_dim": 32}, 4) == 2 * 8 * 2 * 32 * 4
    assert kv_bytes_per_token(llama, 2) == 2 * 8 * 768 * 2
