"""What the workload benchmark asks, and what it gives an engine to answer from: numbers only, no engine.

The shape is that of llm-d's guide to offloading the prefix cache to CPU memory (llm-d 0.4.0,
guides/tiered-prefix-cache/cpu/README.md, appendix), made smaller for one engine on a CPU.
"""

import random
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Final

from kvtier_common.benchmarks import Workload

_FIRST_TOKEN: Final = 10
_TOKENS: Final = 16_000
"""Token ids are drawn from this many, of the bench model's 16,384."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The guide's benchmark, and how much smaller ours is.

    One engine gets its share of the groups and of the concurrency, rounded to whole ones, and caches that
    are larger by as much as the rounding added. All lengths and caches are then divided by one number. So
    these stay as they are: system prompts over device cache, over device and CPU; tokens of a prompt, of a
    question, of an answer and of a step, over one another; requests under way, over groups.

    Args:
        engines: model servers, "8 engines * 24.3 GB/engine".
        groups: `num_groups`.
        prompts_per_group: `num_prompts_per_group`.
        concurrency: "constant concurrency of 45 requests".
        high_system_tokens: `system_prompt_len` of "High Cache".
        low_system_tokens: `system_prompt_len` of "Low Cache".
        question_tokens: `question_len`.
        output_tokens: `output_len`.
        device_cache_tokens: of each engine; see `IN_BLOCKS` and `IN_GB`.
        tier_cache_tokens: of each engine; likewise.
        step_tokens: `max_num_batched_tokens` of vLLM's server on an H100 (engine/arg_utils.py),
            which the guide does not set.
        divisor: of lengths and caches; ours, so that a CPU core ends both workloads within minutes.
    """

    device_cache_tokens: int
    tier_cache_tokens: int
    engines: int = 8
    groups: int = 45
    prompts_per_group: int = 10
    concurrency: int = 45
    high_system_tokens: int = 30_000
    low_system_tokens: int = 8_000
    question_tokens: int = 256
    output_tokens: int = 1_024
    step_tokens: int = 8_192
    divisor: int = 30

    def high_cache(self) -> Workload:
        """System prompts that the device cache cannot hold, and device and CPU can."""
        return self._workload(self.high_system_tokens)

    def low_cache(self) -> Workload:
        """System prompts that the device cache holds."""
        return self._workload(self.low_system_tokens)

    def _workload(self, system_tokens: int) -> Workload:
        return Workload(
            groups=self._groups(),
            prompts_per_group=self.prompts_per_group,
            system_tokens=round(system_tokens / self.divisor),
            question_tokens=round(self.question_tokens / self.divisor),
            output_tokens=round(self.output_tokens / self.divisor),
            concurrency=round(self.concurrency / self.engines),
        )

    def device_tokens(self) -> int:
        """Capacity of the device cache, in tokens."""
        return self._cache_tokens(self.device_cache_tokens)

    def tier_tokens(self) -> int:
        """Capacity of the CPU tier, in tokens."""
        return self._cache_tokens(self.tier_cache_tokens)

    def step_limit_tokens(self) -> int:
        """`max_num_batched_tokens` of the engine."""
        return round(self.step_tokens / self.divisor)

    def _groups(self) -> int:
        return round(self.groups / self.engines)

    def _cache_tokens(self, tokens: int) -> int:
        rounding = self._groups() / Fraction(self.groups, self.engines)
        return ceil(tokens * rounding / self.divisor)

    def ratios(self, workload: Workload) -> dict[str, float]:
        """Return the system prompts' tokens over those that fit the device, and device and CPU."""
        system = workload.groups * workload.system_tokens
        return {
            "system_prompts_over_device": system / self.device_tokens(),
            "system_prompts_over_device_and_cpu": system / (self.device_tokens() + self.tier_tokens()),
        }


IN_BLOCKS: Final = Scaling(device_cache_tokens=9_271 * 16, tier_cache_tokens=41_000 * 16)
"""Caches as the guide's engines had them: "9271 GPU blocks available per engine", `num_cpu_blocks` 41,000,
in vLLM's block size on CUDA of 16 tokens (config/cache.py). The system prompts are 1.14 times the device
cache.
"""

IN_GB: Final = Scaling(device_cache_tokens=121_500, tier_cache_tokens=500_000)
"""Caches as the guide counts them ("Memory Calculation"): 24.3 GB and 100 GB an engine, of 0.0002 GB a token.
The system prompts are 1.39 times the device cache. That does not follow from the number of blocks; but one
engine has all requests of a group, where the guide's had some each, which also asks more of a device cache.
"""


def prompts(workload: Workload, seed: str) -> list[list[int]]:
    """Return one round's prompts in the order in which they are sent, as token ids.

    Groups are mixed at random, as inference-perf does, with which the guide measured
    (datagen/shared_prefix_datagen.py). No two rounds share a prefix.
    """
    numbers = random.Random(seed)  # noqa: S311 - not for secrets

    def text(length: int) -> list[int]:
        return [_FIRST_TOKEN + numbers.randrange(_TOKENS) for _ in range(length)]

    system = [text(workload.system_tokens) for _ in range(workload.groups)]
    found = [
        start + text(workload.question_tokens) for start in system for _ in range(workload.prompts_per_group)
    ]
    numbers.shuffle(found)
    return found


def kv_bytes_per_token(config: dict[str, Any], element_bytes: int) -> int:
    """Return what one token takes in all layers: keys and values of each KV head.

    Args:
        config: a model's config.json; every layer has full attention.
        element_bytes: bytes of one number.
    """
    heads: int = config["num_attention_heads"]
    head_dim: int = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads: int = config.get("num_key_value_heads") or heads
    layers: int = config["num_hidden_layers"]
    return 2 * layers * kv_heads * head_dim * element_bytes
