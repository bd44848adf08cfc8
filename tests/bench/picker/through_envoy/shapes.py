"""What is asked of pickers: requests of the High-cache shape, in three sizes. Text, no I/O."""

import json
import random
from dataclasses import dataclass
from typing import Final

from kvtier_common.benchmarks import HIGH_CACHE
from kvtier_scorer.bench.client import text

WORDS_PER_TOKEN: Final = 0.8
"""Words of four letters and a space, at the 4 bytes a token that pickers estimate."""

_QUESTION_TOKENS: Final = HIGH_CACHE.question_tokens
_NUMBER: Final = b"%016d"


@dataclass(frozen=True, slots=True)
class Shape:
    """One size of the comparison.

    Attributes:
        pods: Pods to choose from.
        prompt_tokens: Length of each prompt: a system prompt that a group shares, and a question.
    """

    pods: int
    prompt_tokens: int


SHAPES: Final = (Shape(1, 1_000), Shape(100, 30_000), Shape(1_000, 30_000))


@dataclass(frozen=True, slots=True)
class Template:
    """A request as it goes over the wire, but for a number that makes its question differ from all others.

    Attributes:
        head: Up to the number.
        tail: After the number.
    """

    head: bytes
    tail: bytes

    def parts(self, number: int) -> tuple[bytes, bytes, bytes]:
        """The request, in parts that are sent together."""
        return self.head, _NUMBER % number, self.tail


def templates(shape: Shape, model: str, seed: int) -> list[Template]:
    """A request for each group of the High-cache shape.

    Args:
        shape: Gives the length of prompts.
        model: Name of the model.
        seed: Which prompts; two seeds share no prefix.
    """
    numbers = random.Random(seed)  # noqa: S311 - not for secrets
    return [_template(shape, model, numbers) for _ in range(HIGH_CACHE.groups)]


def _template(shape: Shape, model: str, numbers: random.Random) -> Template:
    def words(tokens: int) -> str:
        return text(numbers, round(tokens * WORDS_PER_TOKEN))

    place = "NUMBER"
    question = f"{place} {words(_QUESTION_TOKENS)}"
    messages = [
        {"role": "system", "content": words(shape.prompt_tokens - _QUESTION_TOKENS)},
        {"role": "user", "content": question},
    ]
    body = json.dumps({"model": model, "messages": messages, "max_tokens": 1}).encode()
    before, _, after = body.partition(place.encode())
    length = len(before) + len(_NUMBER % 0) + len(after)
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % length
    )
    return Template(head + before, after)
