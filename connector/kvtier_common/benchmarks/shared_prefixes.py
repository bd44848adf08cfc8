"""A workload of shared prefixes: questions about system prompts, of which each has several. Numbers only.

The shape is that of llm-d's guide to a tiered prefix cache (llm-d 0.4.0,
guides/tiered-prefix-cache/cpu/README.md, appendix), which measured with inference-perf's shared_prefix.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Questions about system prompts.

    Attributes:
        groups: Number of system prompts.
        prompts_per_group: Questions about each.
        system_tokens: Length of a system prompt.
        question_tokens: Length of a question.
        output_tokens: Length of an answer.
        concurrency: Requests under way at any time; the next is sent when one has ended.
    """

    groups: int
    prompts_per_group: int
    system_tokens: int
    question_tokens: int
    output_tokens: int
    concurrency: int

    @property
    def requests(self) -> int:
        """Number of requests."""
        return self.groups * self.prompts_per_group

    @property
    def prompt_tokens(self) -> int:
        """Length of one prompt."""
        return self.system_tokens + self.question_tokens


HIGH_CACHE: Final = Workload(
    groups=45,
    prompts_per_group=10,
    system_tokens=30_000,
    question_tokens=256,
    output_tokens=1_024,
    concurrency=45,
)
"""The guide's "High Cache": system prompts fit the CPU tiers of 8 engines, and not their device caches."""

LOW_CACHE: Final = replace(HIGH_CACHE, system_tokens=8_000)
"""The guide's "Low Cache": its system prompts fit the device caches."""

WORKLOADS: Final[Mapping[str, Workload]] = {"high-cache": HIGH_CACHE, "low-cache": LOW_CACHE}
"""As command lines name them."""
