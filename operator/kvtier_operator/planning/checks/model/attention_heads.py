"""Whether the model's heads can be shared out over the ranks."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("attention-heads", "spec.engine.tensorParallelSize")


def attention_heads(given: CheckInput) -> CheckResult:
    """Other splits are refused by vLLM.

    Query heads must be a multiple of the ranks (vLLM, config/model.py, verify_with_parallel_config); KV
    heads a multiple of the ranks, or the ranks a multiple of the KV heads, which are then replicated
    (models/llama.py, LlamaAttention). A latent (MLA) is on every rank whole.
    """
    ranks = given.spec.engine.tensor_parallel_size
    query_heads = given.geometry.attention_heads
    if query_heads and query_heads % ranks:
        return _VERDICTS.reject(
            "HeadsNotDivisible",
            f"{query_heads} attention heads cannot be shared out over {ranks} ranks; "
            f"use one of {_divisors(query_heads)}",
        )
    for group in given.geometry.groups:
        apart = [heads for heads in group.state.heads if heads % ranks] if group.state else []
        if apart:
            return _VERDICTS.reject(
                "StateNotDivisible",
                f"{apart[0]} heads or groups of a linear-attention state cannot be shared out over {ranks} "
                f"ranks; use one of {_divisors(apart[0])}",
            )
        if group.kind in {LayerKind.MLA, LayerKind.STATE}:
            continue
        if group.kv_heads % ranks and ranks % group.kv_heads:
            return _VERDICTS.reject(
                "KVHeadsNotDivisible",
                f"{many(group.kv_heads, 'KV head')} and {ranks} ranks do not divide each other; "
                f"use one of {_divisors(group.kv_heads)} or a multiple of {group.kv_heads}",
            )
        if group.kv_heads < ranks and not given.geometry.kv_heads_replicated:
            return _VERDICTS.reject(
                "KVHeadsNotReplicated",
                f"{many(group.kv_heads, 'KV head')} on {ranks} ranks: vLLM copies none of this model; "
                f"use {many(group.kv_heads, 'rank')} or fewer",
            )
        if group.kv_heads < ranks:
            copies = ranks // group.kv_heads
            return _VERDICTS.warn(
                "KVHeadsReplicated",
                f"{many(group.kv_heads, 'KV head')} on {ranks} ranks: each is kept {copies} times, so every "
                f"tier holds {copies} times fewer tokens; {many(group.kv_heads, 'rank')} would keep each "
                "once",
                by_itself="counts the copies in all sizes",
            )
    return _VERDICTS.passed(f"the model's heads can be shared out over {many(ranks, 'rank')}")


def _divisors(heads: int) -> str:
    return ", ".join(str(number) for number in range(1, min(heads, 64) + 1) if heads % number == 0)
