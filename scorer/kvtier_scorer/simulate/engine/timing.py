"""How long things take on a pod: pure arithmetic."""

from kvtier_scorer.simulate.engine.settings import PodSettings


def load_s(pod: PodSettings, cpu_blocks: int, disk_blocks: int) -> float:
    """Seconds to bring blocks to the device; bytes over bandwidth, tier by tier."""
    return pod.block_bytes * (cpu_blocks / pod.cpu_load_bytes_per_s + disk_blocks / pod.disk_load_bytes_per_s)


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
