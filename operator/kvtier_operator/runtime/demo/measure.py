"""Asks both engines, one query at a time, and has vLLM's counters say where each prefix came from."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Final

from kvtier_operator.runtime.demo.result import DemoResult, Kind, Sample, plan_rounds
from kvtier_operator.runtime.measure.client import OpenAIClient, Query
from kvtier_operator.runtime.measure.samples import Samples
from kvtier_operator.runtime.metrics import parse_metrics

_OUTPUT_TOKENS: Final = 8
_ROUNDS: Final = 3
_OFF_REPEATS: Final = 5
_TOKENIZATIONS: Final = 5
_OFF_KINDS: Final = frozenset({Kind.OFF, Kind.OFF_DEVICE_HIT})
QUESTION: Final = "\n\nSummarize this in 2 sentences.\n"


def measure(
    on_url: str, off_url: str, model: str, documents: Sequence[str], say: Callable[[int, int, Sample], None]
) -> DemoResult:
    """Run the demo's queries.

    Args:
        on_url: Engine with the tier.
        off_url: The same engine without.
        model: Name it is served under.
        documents: Long texts, at least two, with no common beginning.
        say: Is told of each sample, with its number and how many there will be.

    Raises:
        RuntimeFailedError: An engine does not answer, or a prefix did not come from where it should.
    """
    order = plan_rounds(len(documents), _ROUNDS, _OFF_REPEATS)
    prompts = [document + QUESTION for document in documents]
    plain = [Query.completion(model, prompt, _OUTPUT_TOKENS) for prompt in prompts]
    # The cold answers are what the others are compared with, so they say how sure each token was.
    explained = [Query.completion(model, prompt, _OUTPUT_TOKENS, logprobs=2) for prompt in prompts]
    seen_off: set[int] = set()
    samples: list[Sample] = []
    with OpenAIClient(on_url) as on, OpenAIClient(off_url) as off:
        for kind, document in order:
            client = off if kind in _OFF_KINDS else on
            query = explained[document] if kind is Kind.COLD else plain[document]
            sample = _ask(client, kind, document, query)
            first_with_tier_off = kind is Kind.OFF and document not in seen_off
            if first_with_tier_off:
                seen_off.add(document)
                continue
            samples.append(sample)
            say(len(samples), len(order) - 2, sample)
        return DemoResult(tuple(samples), _http_alone(on, model, prompts[0]))


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
