"""How long things take on a pod: pure arithmetic."""

from collections.abc import Mapping

from kvtier_common.tier import Tier
from kvtier_scorer.simulate.engine.settings import PodSettings


def load_s(pod: PodSettings, blocks: Mapping[Tier, int]) -> float:
    """Seconds to bring blocks of other tiers to the device; bytes over bandwidth, tier by tier."""
    return pod.block_bytes * sum(number / pod.load_bytes_per_s[tier] for tier, number in blocks.items())


def compute_s(pod: PodSettings, new_tokens: int, found_tokens: int) -> float:
    """Seconds that a prompt's computed tokens take by themselves.

    The linear layers take `new / prefill rate`; each new token attends to all before it, so there are
    `new x found + new (new + 1) / 2` pairs.
    """
    pairs = new_tokens * found_tokens + new_tokens * (new_tokens + 1) / 2
    return new_tokens / pod.prefill_tokens_per_s + pairs / pod.attention_pairs_per_s


def step_s(pod: PodSettings, context_tokens: float) -> float:
    """Seconds of a step that computes one token of each running request.

    Args:
        pod: Speeds.
        context_tokens: Tokens whose KV is read, of all those requests together.
    """
    return pod.step_s + context_tokens * pod.kv_bytes_per_token / pod.kv_read_bytes_per_s
