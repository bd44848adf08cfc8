"""What is compared on a GPU, without one: settings, turns, what sides are asked, what is made of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kvtier_connector.bench.engine import Answer, Ask
from kvtier_connector.bench.given import Given
from kvtier_connector.bench.model import write_bench_config
from kvtier_connector.bench.sides import ttft, workloads
from kvtier_connector.bench.sides.comparison import Comparison
from kvtier_connector.bench.sides.life import Life
from kvtier_connector.bench.table import table
from kvtier_connector.bench.workloads.load import Round, RoundServed, Served
from kvtier_connector.bench.workloads.shape import Scaling
from kvtier_connector.config import GIB, MIB, ConnectorConfig, kv_transfer_config

TOKEN_BYTES = 147_456
"""Of a model of Qwen3-8B's sizes in bfloat16: 2 x 36 layers x 8 heads x 128 x 2 bytes."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_bench_config(tmp_path / "model", "qwen3-8b")


def test_every_other_turn_goes_backwards(model: Path) -> None:
    order = list(Comparison(model=model, turns=3).order())
    forwards, backwards = ["none", "vllm", "kvtier"], ["kvtier", "vllm", "none"]
    assert [side for _, side in order] == [*forwards, *backwards, *forwards]
    assert [turn for turn, _ in order] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_gpu_s_engine_has_bfloat16_blocks_of_16_and_a_bounded_cache(model: Path) -> None:
    settings = Comparison(model=model).settings(device_tokens=1000, longest_tokens=500)
    assert settings == {
        "model": str(model),
        "dtype": "bfloat16",
        "block_size": 16,
        "enforce_eager": True,
        "load_format": "dummy",
        "worker_extension_cls": "kvtier_connector.bench.random_weights.RandomWeights",
        "max_model_len": 500,
        "kv_cache_memory_bytes": (63 + 1) * 16 * TOKEN_BYTES,
    }


def test_what_is_given_is_the_engine_s_and_the_cache_is_bounded_all_the_same(model: Path) -> None:
    given = Given(arguments=("--block-size", "32"), block_tokens=32, ranks=2, cache_dtype="fp8_e4m3")
    settings = Comparison(model=model, drawn=False, given=given).settings(
        device_tokens=1000, longest_tokens=500
    )
    assert settings == {
        "model": str(model),
        "max_model_len": 500,
        "kv_cache_memory_bytes": (32 + 1) * 32 * TOKEN_BYTES // 2 // 2,
    }


def test_more_ranks_than_heads_repeat_them(model: Path) -> None:
    assert Comparison(model=model, given=Given(ranks=16)).token_bytes() == 2 * TOKEN_BYTES


def test_tiers_of_both_connectors_hold_the_same(model: Path) -> None:
    transfers = Comparison(model=model).transfers(10_000)
    capacity_bytes = 1407 * MIB  # 10,000 x 147,456 bytes are 1,406.25 MiB
    assert transfers["none"] is None
    assert transfers["vllm"] == {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"cpu_bytes_to_use": capacity_bytes},
    }
    chunks_of_64 = ConnectorConfig(cpu_capacity_bytes=capacity_bytes, blocks_per_chunk=4)
    assert transfers["kvtier"] == kv_transfer_config(chunks_of_64)


def test_a_given_tier_is_kvtier_s_and_its_size_both_s(model: Path) -> None:
    transfer = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=5 * GIB, hugepages="Off"))  # type: ignore[arg-type]
    comparison = Comparison(model=model, given=Given(transfer=transfer), sides=("kvtier", "vllm"))
    transfers = comparison.transfers(1)
    assert list(transfers) == ["kvtier", "vllm"]
    assert transfers["kvtier"] == transfer
    assert (transfers["vllm"] or {})["kv_connector_extra_config"] == {"cpu_bytes_to_use": 5 * GIB}


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


Lives = list[tuple[dict[str, Any], Any]]


def fake_life(engines: list[Any], make: Callable[[dict[str, Any] | None], Any]) -> Callable[..., Any]:
    @contextmanager
    def life(settings: dict[str, Any], transfer: dict[str, Any] | None, **_: object) -> Iterator[Life]:
        assert "kv_transfer_config" not in settings
        engine = make(transfer)
        engines.append(engine)
        yield Life(engine, 20.0)

    return life


def ttfts(monkeypatch: pytest.MonkeyPatch, model: Path, *, wrong: bool = False) -> tuple[Any, list[Any]]:
    engines: list[FakeEngine] = []

    def make(transfer: dict[str, Any] | None) -> FakeEngine:
        kvtier = transfer is not None and transfer["kv_connector"] == "KVTierConnector"
        return FakeEngine(tier=transfer is not None, wrong=wrong and kvtier)

    monkeypatch.setattr(ttft, "life", fake_life(engines, make))
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
    assert kvtier["cached_tokens"] == {"cold": 0, "device_hit": 992, "cpu_tier": 960}
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
    made = table({"ttft": report})
    assert list(made.columns[0].cells) == [
        "TTFT, 1000 tokens, H100",
        "  no tier",
        "  vLLM's OffloadingConnector",
        "  kvtier",
    ]
    assert list(made.columns[1].cells) == [
        "outputs equal: True",
        "cold 1000 ms",
        "from the tier 100.0 ms (100.0 to 100.0)",
        "from the tier 100.0 ms (100.0 to 100.0)",
    ]
    beside = list(made.columns[2].cells)
    assert beside[0] == "2 lives of each side, 2 prompts in each"
    assert beside[3] == "cold 1000 ms, device hit 10.0 ms, ready in 20.0 s"


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
    monkeypatch.setattr(workloads, "life", fake_life(engines, FakeLoad))
    monkeypatch.setattr(workloads, "served", lambda engine, asked: engine.serve(asked))
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
    assert table({"workloads": report}).row_count == 2 * (1 + 2 * 2 + 1)


def test_rows_of_workloads(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    report, _ = loads(monkeypatch, model)
    made = table({"workloads": report})
    what, measured, beside = ([*made.columns[at].cells] for at in range(3))
    assert what[0] == "high-cache workload, 6 x 300 tokens, 4 rounds"
    assert (measured[0], beside[0]) == (
        "answers that differ: 4 of 240",
        "system prompts 1.14 of the device cache",
    )
    assert what[1:4] == [
        "  mean TTFT, no tier",
        "  mean TTFT, vLLM's OffloadingConnector",
        "  mean TTFT, kvtier",
    ]
    assert measured[1:4] == ["4", "3, -25.0 % (-25.0 to -25.0)", "2, -50.0 % (-50.0 to -50.0)"]
    assert (beside[2], beside[3]) == ("the guide's -25.6 %", "")
    assert what[7] == "  share of prompt tokens cached"
