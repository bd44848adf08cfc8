"""Generated traces: questions about shared system prompts, mixed at random as inference-perf does."""

import random
from collections.abc import Iterator
from typing import Final

from kvtier_common.benchmarks.shared_prefixes import Workload
from kvtier_scorer.simulate.trace import Segment, Trace, TraceError, TraceRequest, build_trace

_MODEL: Final = "Qwen/Qwen3-32B"
_MOST_REQUESTS: Final = 1_000_000


def generate(name: str, workload: Workload, seed: int, rate_per_s: float | None = None) -> Trace:
    """The requests of a workload in the order in which they are sent.

    Args:
        name: Of the workload.
        workload: What is asked.
        seed: Decides the order of the groups, and the times where there is a rate.
        rate_per_s: Requests a second on average, at random times (Poisson), in place of the concurrency.

    Raises:
        TraceError: It would be too many requests.
    """
    if workload.requests > _MOST_REQUESTS:
        raise TraceError(
            f"{name}: {workload.requests:,} requests are too many, {_MOST_REQUESTS:,} at most; "
            "ask for fewer groups or prompts"
        )
    concurrency = workload.concurrency if rate_per_s is None else None
    return build_trace(name, _requests(workload, seed, rate_per_s), concurrency)


def _requests(workload: Workload, seed: int, rate_per_s: float | None) -> Iterator[TraceRequest]:
    numbers = random.Random(seed)  # noqa: S311 - not for secrets
    groups = [group for group in range(workload.groups) for _ in range(workload.prompts_per_group)]
    numbers.shuffle(groups)
    time_s = 0.0
    for question, group in enumerate(groups):
        if rate_per_s is not None:
            time_s += numbers.expovariate(rate_per_s)
        yield TraceRequest(
            model=_MODEL,
            segments=(
                Segment(("system", group), workload.system_tokens),
                Segment(("question", question), workload.question_tokens),
            ),
            output_tokens=workload.output_tokens,
            time_s=None if rate_per_s is None else time_s,
        )
