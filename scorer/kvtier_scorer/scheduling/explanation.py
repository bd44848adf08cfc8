"""Why a request would go where it would: each pod's numbers from each scorer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kvtier_common.tier import Tier


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """One pod.

    Attributes:
        name: Its name.
        address: `ip:port`.
        excluded: Why it was not a candidate; None where it was one.
        preferred: Whether it comes before others because it holds most of the prompt.
        best: Whether it has the highest score; of several, chance picks one.
        total: Sum of score times weight.
        scores: What each scorer gave it, 0 to 1.
        queue_depth: Requests waiting at the last reading.
        picked: Requests sent to it since.
        running: Requests running at the last reading.
        kv_cache_utilization: Used share of the device cache at the last reading.
        loras: LoRA adapters at the last reading.
        reading_age_s: Age of that reading; None before the first.
        fresh: Whether it is recent enough to say something.
        saturated: Whether the shed rule counts it as saturated.
        matched_tokens: Tokens of the prompt that each tier is believed to hold.
    """

    name: str
    address: str
    excluded: str | None
    preferred: bool
    best: bool
    total: float
    scores: Mapping[str, float]
    queue_depth: int
    picked: int
    running: int
    kv_cache_utilization: float
    loras: tuple[str, ...]
    reading_age_s: float | None
    fresh: bool
    saturated: bool
    matched_tokens: Mapping[Tier, int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a pick would be made from at this moment.

    Attributes:
        refused: What the client would be told instead of a pick; None where there would be one.
        prompt_tokens: Tokens of the prompt, estimated where it was not tokenized.
        block_tokens: Tokens in a block; None without a prefix scorer.
        blocks: Blocks of the prompt that were looked up.
        weights: Of the scorers.
        pods: Every pod, the best first; those that were no candidates last.
    """

    refused: str | None
    prompt_tokens: int
    block_tokens: int | None
    blocks: int
    weights: Mapping[str, float]
    pods: tuple[PodExplanation, ...]

    def as_json(self) -> dict[str, Any]:
        """This as plain values, in the same names; tiers and scorers by theirs."""
        plain = asdict(self)
        for pod, entry in zip(self.pods, plain["pods"], strict=True):
            entry["matched_tokens"] = {tier.label: tokens for tier, tokens in pod.matched_tokens.items()}
        return plain
