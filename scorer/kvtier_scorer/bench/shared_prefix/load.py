"""A constant number of requests under way until there are no more to send."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kvtier_scorer.bench.shared_prefix.client import Answer
from kvtier_scorer.bench.shared_prefix.workload import Question


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A workload's answers in the order sent, and the seconds from the first request to the last answer."""

    seconds: float
    answers: tuple[Answer, ...]


async def constant_concurrency(
    ask: Callable[[Question], Awaitable[Answer]],
    asked: Sequence[Question],
    concurrency: int,
    ended: Callable[[Answer], None] = lambda _: None,
) -> LoadResult:
    """Ask every question, `concurrency` at a time.

    Args:
        ask: Sends one question and returns its answer; does not raise.
        asked: In the order in which they are sent.
        concurrency: Requests under way at any time.
        ended: Told of each answer.
    """
    answers: dict[int, Answer] = {}
    waiting = iter(enumerate(asked))

    async def worker() -> None:
        for number, question in waiting:
            answers[number] = await ask(question)
            ended(answers[number])

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(asked))):
            group.create_task(worker())
    return LoadResult(time.perf_counter() - start, tuple(answers[number] for number in range(len(asked))))
