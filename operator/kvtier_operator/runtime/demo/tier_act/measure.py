"""Asks both engines, one query at a time, and has vLLM's counters say where each prefix came from."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.runtime.demo.tier_act.result import DemoResult, Kind, Sample, plan_rounds, repetitions
from kvtier_operator.runtime.measure.client import OpenAIClient, Query
from kvtier_operator.runtime.measure.samples import Samples
from kvtier_operator.runtime.metrics import parse_metrics

_OUTPUT_TOKENS: Final = 8
# Warm queries and device hits, stopping the engines, the report.
_AFTERWARDS_S: Final = 25.0
_TOKENIZATIONS: Final = 5
_OFF_KINDS: Final = frozenset({Kind.OFF, Kind.OFF_DEVICE_HIT})
QUESTION: Final = "\n\nSummarize this in 2 sentences.\n"


@dataclass(frozen=True, slots=True)
class Questions:
    """What to ask.

    Attributes:
        model: Name it is served under.
        documents: Long texts, at least two, with no common beginning.
        until_s: When to be done (time.monotonic); a slow machine gets fewer repetitions.
    """

    model: str
    documents: Sequence[str]
    until_s: float


def measure(
    on_url: str, off_url: str, asked: Questions, say: Callable[[int, int, Sample], None]
) -> DemoResult:
    """Run the demo's queries.

    Args:
        on_url: Engine with the tier.
        off_url: The same engine without.
        asked: What to ask.
        say: Is told of each sample, with its number and how many there will be.

    Raises:
        RuntimeFailedError: An engine does not answer, or a prefix did not come from where it should.
    """
    prompts = [document + QUESTION for document in asked.documents]
    queries = [Query.completion(asked.model, prompt, _OUTPUT_TOKENS) for prompt in prompts]
    seen_off: set[int] = set()
    with OpenAIClient(on_url) as on, OpenAIClient(off_url) as off:
        first = _ask(on, Kind.COLD, 0, queries[0])
        wanted = repetitions(first.answer.total_s, asked.until_s - _AFTERWARDS_S - time.monotonic())
        samples = [first]
        say(1, wanted.samples, first)
        for kind, document in plan_rounds(wanted.documents, wanted.rounds, wanted.off_repeats)[1:]:
            sample = _ask(off if kind in _OFF_KINDS else on, kind, document, queries[document])
            first_with_tier_off = kind is Kind.OFF and document not in seen_off
            if first_with_tier_off:
                seen_off.add(document)
                continue
            samples.append(sample)
            say(len(samples), wanted.samples, sample)
        return DemoResult(tuple(samples), _http_alone(on, asked.model, prompts[0]))


def _ask(client: OpenAIClient, kind: Kind, document: int, query: Query) -> Sample:
    before = parse_metrics(client.text("/metrics"))
    answer = client.ask(query)
    served = parse_metrics(client.text("/metrics")).since(before)
    sample = Sample(kind, document, answer, served)
    sample.verify()
    return sample


def _http_alone(client: OpenAIClient, model: str, prompt: str) -> Samples:
    """Time of vLLM's /tokenize for one prompt: the request, reading it, and its tokens."""
    body = json.dumps({"model": model, "prompt": prompt}).encode()
    seconds = []
    for _ in range(_TOKENIZATIONS):
        start = time.perf_counter()
        client.post("/tokenize", body)
        seconds.append(time.perf_counter() - start)
    return Samples.of(seconds)
