"""The workloads on a GPU, without one: which rounds the sides serve, and what is made of them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connector.bench.fake_life import fake_life

from kvtier_connector.bench.parts.workloads import on_gpu
from kvtier_connector.bench.parts.workloads.load import Round, RoundServed, Served
from kvtier_connector.bench.parts.workloads.rows import rows
from kvtier_connector.bench.parts.workloads.shape import Scaling
from kvtier_connector.bench.sides.comparison import Comparison

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
    monkeypatch.setattr(on_gpu, "life", fake_life(engines, FakeLoad))
    monkeypatch.setattr(on_gpu, "served", lambda engine, asked: engine.serve(asked))
    report = on_gpu.compare_workloads(
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
    assert high["ratio"]["vllm"]["request_ttft_s"]["percent"] == -25.0
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
    assert all(asked.connected is None for engine in engines for asked in engine.rounds)
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
    assert (beside[2], beside[3]) == ("the guide's -25.6 %", "")
    assert what[7] == "  share of prompt tokens cached"
