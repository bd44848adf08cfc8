"""What one engine is asked in its life, in which order, and where its time went."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.connector.bench.test_ttft import FakeEngine

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench import workloads
from kvtier_connector.bench.life import Asked, live
from kvtier_connector.bench.load import Round, RoundServed, Served

WORKLOAD = Workload(
    groups=2, prompts_per_group=2, system_tokens=8, question_tokens=2, output_tokens=1, concurrency=2
)
ASKED = Asked(prompt_tokens=1000, prompts=2, compared=1, workloads={"shared": WORKLOAD}, rounds={"shared": 2})


class Engine(FakeEngine):
    """Also serves rounds, and says in which order it was asked."""

    ready_s = 20.0

    def __init__(self, *, tier: bool) -> None:
        super().__init__(tier=tier)
        self.has_tier = tier
        self.order: list[str] = []
        self.rounds: list[Round] = []

    def exchange(self, question: dict[str, Any]) -> dict[str, Any]:
        self.order.append(next(iter(question)))
        return {"took_s": 1.0, "seconds": [0.1] * question.get("requests", 3)}

    def rest(self, timeout_s: float = 0.0) -> None:
        del timeout_s
        self.order.append("rest")

    def run(self, ask: Any) -> Any:  # noqa: ANN401 - as it has it
        self.order.append("ask")
        return super().run(ask)

    def serve(self, asked: Round) -> RoundServed:
        self.order.append("round")
        self.rounds.append(asked)
        return RoundServed(1.0, [Served(0.1, 0.2, 0, [1])] * asked.workload.requests, 0.0)


@pytest.fixture(autouse=True)
def _rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "ask_round", lambda engine, asked: engine.serve(asked))


def lived(engine: Engine, asked: Asked = ASKED) -> dict[str, Any]:

    return live(engine, asked, tier=engine.has_tier, say=lambda _line: None)  # type: ignore[arg-type]


def test_a_tier_that_grows_is_watched_before_anything_else_is_asked() -> None:
    engine = Engine(tier=True)
    life = lived(engine)
    assert engine.order[:3] == ["watch", "rest", "watch"], "it comes to its end at rest"
    assert [len(life["growth"][when]) for when in ("growing", "grown")] == [3, 3]
    assert [what for what in engine.order if what != "rest"][-2:] == ["round", "round"]
    assert {kind: len(each) for kind, each in life["ttft"].items()} == {
        "cold": 2,
        "device_hit": 6,
        "cpu_tier": 6,
    }
    assert [len(each["cpu_tier"]) for each in life["answers"]] == [3]
    assert [len(one["requests"]) for one in life["rounds"]["shared"]] == [4, 4]


def test_without_a_tier_nothing_is_asked_of_one() -> None:
    engine = Engine(tier=False)
    life = lived(engine)
    assert "watch" not in engine.order
    assert life["growth"] is None
    assert "cpu_tier" not in life["ttft"]


def test_lives_of_a_turn_are_asked_the_same_and_no_turn_what_another_was() -> None:
    engines = [Engine(tier=tier) for tier in (True, False, True)]
    for turn, engine in zip((0, 0, 1), engines, strict=True):
        lived(engine, replace(ASKED, turn=turn))
    seeds = [{ask.seed for ask in engine.asked if ask.seed >= 0} for engine in engines]
    assert seeds[0] == seeds[1]
    assert not seeds[0] & seeds[2]
    asked = [[one.seed for one in engine.rounds] for engine in engines]
    assert asked[0] == asked[1]
    assert not {*asked[0]} & {*asked[2]}
