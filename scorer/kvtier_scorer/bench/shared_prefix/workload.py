"""What is asked: the guide's two sizes of a workload of shared prefixes, and its text. No I/O."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_common.benchmarks import Workload

_CONSONANTS: Final = "bcdfghklmnprstvz"
_VOWELS: Final = "aeiou"
_SYLLABLES: Final = tuple(consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS)


HIGH_CACHE: Final = Workload(
    groups=45,
    prompts_per_group=10,
    system_tokens=30_000,
    question_tokens=256,
    output_tokens=1_024,
    concurrency=45,
)
"""The guide's "High Cache": its system prompts are more than the device caches of 8 engines hold."""

LOW_CACHE: Final = Workload(
    groups=45,
    prompts_per_group=10,
    system_tokens=8_000,
    question_tokens=256,
    output_tokens=1_024,
    concurrency=45,
)
"""The guide's "Low Cache": its system prompts fit the device caches."""

WORKLOADS: Final[Mapping[str, Workload]] = {"high-cache": HIGH_CACHE, "low-cache": LOW_CACHE}
"""As the command line names them."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request of a workload.

    Attributes:
        group: Number of its system prompt.
        system: The system prompt.
        text: The question.
    """

    group: int
    system: str
    text: str


def questions(workload: Workload, words_per_token: float, seed: int) -> list[Question]:
    """The requests of a workload in the order in which they are sent; groups are mixed at random.

    Args:
        workload: What is asked.
        words_per_token: Words of `text` that the model's tokenizer makes one token of.
        seed: Which prompts; two seeds share no prefix.
    """
    numbers = random.Random(seed)  # noqa: S311 - not for secrets

    def words(tokens: int) -> str:
        return text(numbers, max(1, round(tokens * words_per_token)))

    found = []
    for group in range(workload.groups):
        system = words(workload.system_tokens)
        found += [
            Question(group, system, words(workload.question_tokens))
            for _ in range(workload.prompts_per_group)
        ]
    numbers.shuffle(found)
    return found


def text(numbers: random.Random, words: int) -> str:
    """Pronounceable words of two syllables: every tokenizer splits them in much the same way everywhere."""
    return " ".join("".join(numbers.choices(_SYLLABLES, k=2)) for _ in range(words))
