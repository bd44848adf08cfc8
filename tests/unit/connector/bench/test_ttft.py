"""Times to first token on a GPU, without one: what the sides are asked, and what is made of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connector.bench.fake_life import fake_life

from kvtier_connector.bench import comparison, ttft
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.engine import Answer, Ask
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.ttft import rows


class FakeEngine:
    """Answers from its device cache or its tier, by what it was asked, and remembers that."""

    def __init__(self, *, tier: bool, wrong: bool = False) -> None:
        self.asked: list[Ask] = []
        self.rests = 0
        self._has_tier = tier
        self._wrong = wrong
        self._device: set[int] = set()
        self._tier: set[int] = set()

    def rest(self, timeout_s: float = 10) -> None:
        assert timeout_s > 0
        self.rests += 1

    def run(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        if ask.forget:
            self._device.clear()
        hit, loaded = ask.seed in self._device, ask.seed in self._tier
        seconds = 0.01 if hit else 0.1 if loaded else 1.0
        self._device.add(ask.seed)
        if self._has_tier:
            self._tier.add(ask.seed)
        cached = ask.prompt_tokens - 8 if hit else ask.prompt_tokens - 40 if loaded else 0
        wrong = self._wrong and loaded and not hit
        return Answer(seconds, [ask.seed + wrong], cached)


def ttfts(monkeypatch: pytest.MonkeyPatch, model: Path, *, wrong: bool = False) -> tuple[Any, list[Any]]:
    engines: list[FakeEngine] = []

    def make(transfer: dict[str, Any] | None) -> FakeEngine:
        kvtier = transfer is not None and transfer["kv_connector"] == "KVTierConnector"
        return FakeEngine(tier=transfer is not None, wrong=wrong and kvtier)

    monkeypatch.setattr(comparison, "bench_engine", fake_life(engines, make))
    said: list[str] = []
    report = ttft.compare_ttft(
        Comparison(model=model, device="H100"),
        prompt_tokens=1000,
        repeats=2,
        log=model / "x.log",
        say=said.append,
    )
    assert len(said) == 6
    assert said[2] == (
        "ttft, turn 1 of 2, kvtier: ready in 20.0 s, cold 1.000 s, device_hit 0.010 s, cpu_tier 0.100 s"
    )
    return report, engines


def test_first_tokens_by_where_the_prompt_was(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, engines = ttfts(monkeypatch, model)
    assert (report["device"], report["turns"], report["repeats"]) == ("H100", 2, 2)
    assert list(report["sides"]) == ["none", "vllm", "kvtier"]
    assert report["outputs_equal"] is True
    kvtier, none = report["sides"]["kvtier"], report["sides"]["none"]
    assert (kvtier["cold_s"], kvtier["device_hit_s"], kvtier["cpu_tier_s"]) == (1.0, 0.01, 0.1)
    assert kvtier["cached_tokens"] == {"cold": 0, "device_hit": 968, "cpu_tier": 936}
    assert (kvtier["speedup"], kvtier["over_device_hit"]) == pytest.approx((10, 10))
    assert (kvtier["ready_s"], kvtier["spread_s"]["cpu_tier"]) == (20.0, [0.1, 0.1])
    assert "cpu_tier_s" not in none
    assert "speedup" not in none
    assert all(engine.rests == 1 + 2 for engine in engines)


def test_all_sides_of_a_turn_are_asked_the_same_and_no_turn_what_another_was(
    monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    _, engines = ttfts(monkeypatch, model)
    seeds = [sorted({ask.seed for ask in engine.asked if ask.seed >= 0}) for engine in engines]
    assert seeds == [[0, 1]] * 3 + [[2, 3]] * 3


def test_a_wrong_answer_from_a_tier_shows(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = ttfts(monkeypatch, model, wrong=True)
    assert report["outputs_equal"] is False


def test_rows_of_first_tokens(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = ttfts(monkeypatch, model)
    what, measured, beside, _ = zip(*rows(report), strict=True)
    assert list(what) == [
        "TTFT, 976 tokens, H100",
        "  no tier",
        "  vLLM's OffloadingConnector",
        "  kvtier",
    ]
    assert list(measured) == [
        "outputs equal: True",
        "cold 1000 ms",
        "from the tier 100.0 ms (100.0 to 100.0)",
        "from the tier 100.0 ms (100.0 to 100.0)",
    ]
    assert beside[0] == "2 lives of each side, 2 prompts in each"
    assert beside[3] == "cold 1000 ms, device hit 10.0 ms, ready in 20.0 s"


def test_on_a_cpu_kvtier_alone_is_asked_in_one_life(
    monkeypatch: pytest.MonkeyPatch, run: Run, model: Path
) -> None:
    engines: list[FakeEngine] = []
    monkeypatch.setattr(
        comparison, "bench_engine", fake_life(engines, lambda _transfer: FakeEngine(tier=True))
    )
    report = ttft.measure(replace(run, model=model, turns=3))
    assert (list(report["sides"]), report["turns"], len(engines)) == (["kvtier"], 1, 1)
    assert [row[0] for row in rows(report)] == ["TTFT, 100 tokens, cpu", "  kvtier"]
