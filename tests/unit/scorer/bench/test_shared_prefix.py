import asyncio
import json
from dataclasses import replace

import pytest
from rich.console import Console

from kvtier_common.benchmarks import HIGH_CACHE, LOW_CACHE, Workload
from kvtier_scorer.bench.client import (
    Answer,
    FoundTokens,
    LoadResult,
    Question,
    constant_concurrency,
    found_tokens,
    questions,
)
from kvtier_scorer.bench.measure import Figures, HitRate, table

SMALL = Workload(
    groups=3, prompts_per_group=4, system_tokens=30, question_tokens=6, output_tokens=2, concurrency=2
)


def answer(ttft_s: float, **more: object) -> Answer:
    return Answer(group=0, ttft_s=ttft_s, e2e_s=2 * ttft_s, prompt_tokens=36, output_tokens=2, **more)  # type: ignore[arg-type]


def figures(name: str = "tier on", result: LoadResult | None = None) -> Figures:
    result = result or LoadResult(2.0, tuple(answer(0.1 * number) for number in range(1, 11)))
    before = {"a": FoundTokens(100, 10, 20), "b": FoundTokens()}
    after = {"a": FoundTokens(400, 110, 50), "b": FoundTokens(100, 20, 0)}
    return Figures.of(name, SMALL, result, before, after)


def test_the_sizes_are_the_guides() -> None:
    assert (HIGH_CACHE.requests, HIGH_CACHE.system_tokens, HIGH_CACHE.concurrency) == (450, 30_000, 45)
    assert replace(LOW_CACHE, system_tokens=30_000) == HIGH_CACHE


def test_questions_share_their_groups_system_prompt_and_nothing_else() -> None:
    asked = questions(SMALL, words_per_token=0.5, seed=1)
    assert len(asked) == 12
    assert len({question.text for question in asked}) == 12
    by_group = {group: {q.system for q in asked if q.group == group} for group in range(3)}
    assert all(len(systems) == 1 for systems in by_group.values())
    assert len(set.union(*by_group.values())) == 3
    assert all(len(question.system.split()) == 15 for question in asked)
    assert all(len(question.text.split()) == 3 for question in asked)


def test_questions_are_mixed_and_follow_the_seed() -> None:
    asked = questions(SMALL, 1.0, seed=1)
    assert asked == questions(SMALL, 1.0, seed=1)
    assert not {q.system for q in asked} & {q.system for q in questions(SMALL, 1.0, seed=2)}
    assert [question.group for question in asked] != sorted(question.group for question in asked)


async def test_as_many_requests_as_asked_for_are_under_way() -> None:
    asked = [Question(number, "", "") for number in range(7)]
    gates = [asyncio.Event() for _ in asked]
    started: asyncio.Queue[int] = asyncio.Queue()

    async def ask(question: Question) -> Answer:
        started.put_nowait(question.group)
        await gates[question.group].wait()
        return replace(answer(1.0), group=question.group)

    ended: list[int] = []
    run = asyncio.create_task(constant_concurrency(ask, asked, 3, lambda each: ended.append(each.group)))
    assert [await started.get() for _ in range(3)] == [0, 1, 2]
    await asyncio.sleep(0)
    assert started.empty()
    gates[1].set()
    assert await started.get() == 3
    assert ended == [1]
    for gate in gates:
        gate.set()
    result = await run
    assert [answer.group for answer in result.answers] == list(range(7))


def test_figures() -> None:
    found = figures()
    document = found.to_json()
    assert document["ttft_mean_s"] == pytest.approx(0.55)
    assert document["ttft_p90_s"] == pytest.approx(0.9)
    assert document["e2e_mean_s"] == pytest.approx(1.1)
    assert found.output_tokens_per_s == 10
    assert found.tokens_per_s == 190
    assert found.hit_rate == HitRate(device=120 / 400, tier=30 / 400)
    assert found.engine_share == (0.75, 0.25)


def test_figures_names_are_what_people_read() -> None:
    document = figures().to_json()
    assert " ".join(document) == (
        "name workload requests failed failure seconds ttft_s e2e_s output_tokens_per_s tokens_per_s "
        "hit_rate engine_share ttft_mean_s ttft_p90_s e2e_mean_s e2e_p90_s"
    )
    assert " ".join(document["workload"]) == (
        "groups prompts_per_group system_tokens question_tokens output_tokens concurrency"
    )
    assert " ".join(document["hit_rate"]) == "device tier"


def test_failed_requests_count_in_no_figure() -> None:
    answers = (answer(0.5), Answer(0, 0.0, 9.0, error="503 no pod"), Answer(0, 0.0, 9.0, error="later"))
    found = figures(result=LoadResult(1.0, answers))
    assert (found.requests, found.failed, found.failure) == (1, 2, "503 no pod")
    assert found.ttft_s == (0.5,)


def test_nothing_answered_has_figures_too() -> None:
    found = figures(result=LoadResult(1.0, (Answer(0, 0.0, 9.0, error="no"),)))
    assert found.requests == 0
    assert "ttft_mean_s" not in found.to_json()
    Console().print(table([found]))


def test_figures_survive_json() -> None:
    found = figures()
    assert Figures.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_without_engines_no_hit_rate() -> None:
    found = Figures.of("x", SMALL, LoadResult(1.0, (answer(1.0),)), {}, {})
    assert found.hit_rate is None
    assert Figures.from_json(found.to_json()) == found


def test_table_has_a_column_a_run_and_no_empty_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Console(width=120).print(table([figures("tier off"), figures("tier on")]))
    printed = capsys.readouterr().out
    for wanted in ("tier off", "tier on", "550 ms", "900 ms", "30.0%", "7.5%", "75% 25%", "190 tokens/s"):
        assert wanted in printed
    assert "failed" not in printed


def test_engines_of_one_address_are_added_up() -> None:
    text = """
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0"} 10
vllm:prefix_cache_queries_total{engine="1"} 5
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0"} 4
# TYPE vllm:external_prefix_cache_hits counter
vllm:external_prefix_cache_hits_total{engine="1"} 2
"""
    assert found_tokens(text) == FoundTokens(queried=15, device=4, tier=2)
