"""The part remote without engines: who is asked what, what is made of it, and the store that is its own."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.connector.bench.fake_life import fake_life

from kvtier_connector.bench import remote_tier
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.engine import Answer, Ask
from kvtier_connector.bench.load import RoundServed, Served
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.remote_tier import Side, tier
from kvtier_connector.bench.store.figures import SLOW, WITH_STORE, WITHOUT, rows
from kvtier_connector.bench.store.wire import Moved

PORT, SLOW_PORT, OTHER_PORT = 7, 8, 9
OTHER = "other"
COLD_S, READ_S, HIT_S, WIRE_S = 4.0, 0.5, 0.25, 0.4


@dataclass
class FakeStore:
    """Has what was used a second time."""

    port = PORT
    access = None
    values = 0

    def __post_init__(self) -> None:
        self.prompts = set[int]()

    def wait_until_written(self, before: int, *_: float) -> None:
        assert self.prompts
        assert before == self.values


class FakeEngine:
    """Answers from device, memory or store, by the port that it was given."""

    def __init__(self, transfer: dict[str, Any], store: FakeStore) -> None:
        url = transfer["kv_connector_extra_config"].get("remote_url", "")
        self.port = int(url.rpartition(":")[2] or 0)
        self._store = store
        self._device, self._memory = set[int](), set[int]()

    def rest(self, timeout_s: float = 10) -> None:
        assert timeout_s > 0

    def run(self, ask: Ask) -> Answer:
        if ask.forget:
            self._device.clear()
        seconds, cached = COLD_S, 0
        if ask.seed in self._device:
            seconds, cached = HIT_S, ask.prompt_tokens - 1
        elif ask.seed in self._memory:
            seconds, cached = READ_S, ask.prompt_tokens - 8
            if self.port == PORT:
                self._store.prompts.add(ask.seed)
        elif self.port == PORT and ask.seed in self._store.prompts:
            seconds, cached = READ_S, ask.prompt_tokens - 8
        self._device.add(ask.seed)
        self._memory.add(ask.seed)
        return Answer(seconds, [ask.seed], cached)

    def exchange(self, question: dict[str, Any]) -> dict[str, Any]:
        assert question["engines"] == 2
        workload = question["workload"]
        requests = workload["groups"] * workload["prompts_per_group"] // 2
        seconds = 1.0 + question["engine"] - (0.5 if self.port else 0)
        served = [Served(seconds, seconds, workload["system_tokens"] // 2, [1])] * requests
        return asdict(RoundServed(seconds, served, loaded_bytes=0.0, store_bytes=1000.0 if self.port else 0))


class FakeWire:
    def read_plainly(self) -> Moved:
        return Moved(1 << 30, WIRE_S, 0.2)

    def read(self) -> Moved:
        return Moved(1 << 30, WIRE_S, 0.25)

    def write(self) -> Moved:
        return Moved(1 << 30, WIRE_S, 0.3)


@pytest.fixture
def report(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    store = FakeStore()

    @contextmanager
    def given(value: object) -> Generator[Any]:
        yield value

    engines: list[FakeEngine] = []
    monkeypatch.setattr(
        remote_tier, "bench_engine", fake_life(engines, lambda transfer: FakeEngine(transfer or {}, store))
    )
    monkeypatch.setattr(remote_tier, "bench_store", lambda *_: given(store))
    monkeypatch.setattr(remote_tier, "slow_way", lambda *_: given(SLOW_PORT))
    monkeypatch.setattr(remote_tier, "wire_to", lambda *_: given(FakeWire()))
    other = tier(Comparison(model=model), 1000, OTHER_PORT)
    sides = {OTHER: Side(title="another, the same store", first=other, second=other)}
    asked = replace(run, model=model, prompt_tokens=1000, repeats=4)
    return remote_tier.compare_remote(asked, lambda *_: given(sides))


def test_what_another_computed_comes_from_the_store_or_is_computed(report: dict[str, Any]) -> None:
    ttft = report["ttft"]
    assert ttft["outputs_equal"]
    assert ttft["wire_s"] == {"median": WIRE_S, "spread": [WIRE_S, WIRE_S]}
    sides = ttft["sides"]
    assert {name: side["ttft_s"]["median"] for name, side in sides.items()} == {
        WITHOUT: COLD_S,
        WITH_STORE: READ_S,
        SLOW: COLD_S,
        OTHER: COLD_S,  # it writes nothing, and its store is not kvtier's
    }
    assert [side["cached_tokens"] for side in sides.values()] == [0, 992, 0, 0]
    assert sides[WITH_STORE]["over_longer"]["ratio"] == READ_S / WIRE_S
    assert sides[WITH_STORE]["over_both"]["ratio"] == READ_S / (WIRE_S + HIT_S)
    assert sides[SLOW]["over_without"]["ratio"] == 1
    assert ttft["cpu_s_per_gib"]["read"]["median"] == 0.25


def test_two_engines_of_a_side_serve_a_round_together(report: dict[str, Any]) -> None:
    workload = report["high_cache"]
    assert workload["sides"].keys() == {WITHOUT, WITH_STORE, OTHER}, (
        "the slow store's first engine has served"
    )
    assert workload["requests_differing"] == 0
    assert workload["ratio"][WITH_STORE]["total_tokens_per_s"]["ratio"] == pytest.approx(2.0 / 1.5)
    assert workload["sides"][WITHOUT]["store_hit_rate"]["median"] == 0
    assert workload["sides"][WITH_STORE]["store_hit_rate"]["median"] > 0


def test_the_table_says_the_same(report: dict[str, Any]) -> None:
    table = {row[0].strip(): row for row in rows(report)}
    assert table["no remote tier"][1] == "4e+03 ms (4e+03 to 4e+03)"
    assert table["kvtier, a store"][1] == "500 ms (500 to 500)"
    assert "1.250 x the longer of wire and hit, 0.77 x both" in table["kvtier, a store"][2]
    assert table["kvtier, a store"][3] == "1.15 x"
    assert "1.000 x no remote tier" in next(row[2] for name, row in table.items() if "MB/s" in name)
    assert table["client's CPU seconds a GiB"][1].startswith("read 0.25")
