"""Generated traces: questions about shared system prompts, the shape of llm-d's guide.

Source of the two sizes: llm-d 0.4.0, guides/tiered-prefix-cache/cpu/README.md, appendix, measured with
inference-perf's shared_prefix, which mixes the groups at random as we do.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_scorer.simulate.trace import Segment, Trace, TraceError, TraceRequest, build_trace

_MODEL: Final = "Qwen/Qwen3-32B"
_MOST_REQUESTS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Questions about system prompts.

    Attributes:
        groups: `num_groups`: system prompts.
        prompts_per_group: `num_prompts_per_group`: questions about each.
        system_tokens: `system_prompt_len`.
        question_tokens: `question_len`.
        output_tokens: `output_len`.
        concurrency: Requests under way at any time; the next is sent when one has ended.
        rate_per_s: Requests a second on average, at random times (Poisson), in place of the concurrency;
            None without.
    """

    groups: int = 45
    prompts_per_group: int = 10
    system_tokens: int = 30_000
    question_tokens: int = 256
    output_tokens: int = 1_024
    concurrency: int = 45
    rate_per_s: float | None = None


HIGH_CACHE: Final = Workload()
"""The guide's "High Cache": system prompts fit the CPU tiers of 8 engines, and not their device caches."""

LOW_CACHE: Final = Workload(system_tokens=8_000)
"""The guide's "Low Cache": the system prompts fit the device caches."""

WORKLOADS: Final[Mapping[str, Workload]] = {"high-cache": HIGH_CACHE, "low-cache": LOW_CACHE}


def generate(name: str, workload: Workload, seed: int) -> Trace:
    """The requests of a workload in the order in which they are sent.

    Args:
        name: Of the workload.
        workload: What is asked.
        seed: Decides the order of the groups, and the times where there is a rate.

    Raises:
        TraceError: It would be too many requests.
    """
    requests = workload.groups * workload.prompts_per_group
    if requests > _MOST_REQUESTS:
        raise TraceError(
            f"{name}: {requests:,} requests are too many, {_MOST_REQUESTS:,} at most; "
            "ask for fewer groups or prompts"
        )
    closed = workload.rate_per_s is None
    return build_trace(name, _requests(workload, seed), workload.concurrency if closed else None)


def _requests(workload: Workload, seed: int) -> Iterator[TraceRequest]:
    numbers = random.Random(seed)  # noqa: S311 - not for secrets
    groups = [group for group in range(workload.groups) for _ in range(workload.prompts_per_group)]
    numbers.shuffle(groups)
    time_s = 0.0
    for question, group in enumerate(groups):
        if workload.rate_per_s is not None:
            time_s += numbers.expovariate(workload.rate_per_s)
        yield TraceRequest(
            model=_MODEL,
            segments=(
                Segment(("system", group), workload.system_tokens),
                Segment(("question", question), workload.question_tokens),
            ),
            output_tokens=workload.output_tokens,
            time_s=None if workload.rate_per_s is None else time_s,
        )
