"""How fast the engine computes prompts, seen from its scheduler.

A step that computes much is given a number, which the workers send back with what they computed. Steps
without work send nothing back, and with asynchronous scheduling the next step is planned before the last has
ended: what comes back cannot be told to be a step's by its turn.
"""

import time
from collections.abc import Iterator
from typing import Final

from vllm.v1.core.sched.output import SchedulerOutput

from kvtier_connector.core.disk.worth.prefill_model import PrefillModel, TokenSpan

_LEAST_TOKENS: Final = 256
"""A step of so many tokens computes a prompt; decoding steps have one token a request."""


class PrefillClock:
    """Measures steps from being planned, or from the end of the one before, to their end.

    Args:
        model: Learns of them.
    """

    def __init__(self, model: PrefillModel) -> None:
        self._model = model
        self._begun = dict[int, tuple[TokenSpan, float]]()
        self._last_number = 0
        self._last_end_s = 0.0

    def begin(self, output: SchedulerOutput) -> int:
        """Return the number of a step that is worth measuring, or 0."""
        if output.total_num_scheduled_tokens < _LEAST_TOKENS:
            return 0
        self._last_number += 1
        computed = sum(_parts(output), TokenSpan(0, 0.0))
        self._begun[self._last_number] = computed, time.monotonic()
        return self._last_number

    def forget(self, number: int) -> None:
        """Leave a step out: it waits for something else, too."""
        self._begun.pop(number, None)

    def ended(self, numbers: frozenset[int]) -> None:
        """Take note of a step's end, and of the numbers that came with it."""
        now_s = time.monotonic()
        for number in numbers:
            computed, start_s = self._begun.pop(number, (TokenSpan(0, 0.0), now_s))
            self._model.measured(computed, now_s - max(start_s, self._last_end_s))
        self._last_end_s = now_s


def _parts(output: SchedulerOutput) -> Iterator[TokenSpan]:
    """Yield what is computed of each request."""
    cached = output.scheduled_cached_reqs
    before = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
    before |= {request.req_id: request.num_computed_tokens for request in output.scheduled_new_reqs}
    for request_id, tokens in output.num_scheduled_tokens.items():
        first = before.get(request_id, 0)
        yield TokenSpan.of(first, first + tokens)
