"""The same long context asked twice, and again: what the second time saves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvtier_operator.runtime.measure.client import Answer, OpenAIClient, Query
from kvtier_operator.runtime.measure.samples import Samples


@dataclass(frozen=True, slots=True)
class QueryTwice:
    """One cold query and its repetitions.

    Attributes:
        model: The model asked.
        cold: The first query.
        warm: The same query again, in order.
    """

    model: str
    cold: Answer
    warm: tuple[Answer, ...]

    @property
    def warm_samples(self) -> Samples:
        """Times to first token of the repetitions."""
        return Samples.of([answer.ttft_s for answer in self.warm])

    @property
    def speedup(self) -> float:
        """Cold time to first token over the median of the warm ones."""
        return self.cold.ttft_s / self.warm_samples.median_s

    @property
    def outputs_equal(self) -> bool:
        """Whether every answer was the same."""
        return all(answer.text == self.cold.text for answer in self.warm)

    def to_json(self) -> dict[str, Any]:
        """The figures, for a program."""
        return {
            "model": self.model,
            "prompt_tokens": self.cold.prompt_tokens,
            "cold_ttft_s": self.cold.ttft_s,
            "warm_ttft_s": self.warm_samples.median_s,
            "speedup": self.speedup,
            "outputs_equal": self.outputs_equal,
            "warm": self.warm_samples.to_json(),
        }


def query_twice(
    client: OpenAIClient, model: str, query: Query, repeat: int, done: Callable[[int, Answer], None]
) -> QueryTwice:
    """Send `query` once cold and `repeat` times warm.

    Args:
        client: Connection to the server.
        model: Name of the model, for the report.
        query: What to ask.
        repeat: Repetitions, at least 1.
        done: Is told of each answer: 0 the cold one, then the repetitions.

    Raises:
        RuntimeFailedError: The server does not answer, refuses, or generates nothing.
    """
    answers = []
    for number in range(repeat + 1):
        answers.append(client.ask(query))
        done(number, answers[-1])
    return QueryTwice(model, answers[0], tuple(answers[1:]))
