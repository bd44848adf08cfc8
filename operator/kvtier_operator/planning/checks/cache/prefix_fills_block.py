"""Whether any prompt is as long as one block, so that anything can be found again."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("prefix-fills-block", "spec.engine.maxModelLen")


def prefix_fills_block(given: CheckInput) -> CheckResult:
    """VLLM finds whole blocks, and computes at least one token behind them (vLLM #48401)."""
    geometry = given.geometry
    longest = given.spec.engine.max_model_len or geometry.max_position_tokens
    block_tokens = geometry.block_tokens
    most = max((block_tokens, *geometry.block_tokens_by_gpu))
    if longest is None or longest > most:
        return _VERDICTS.passed(f"a prefix is found from {count(block_tokens)} tokens on")
    if longest > block_tokens:
        return _VERDICTS.warn(
            "NothingMayBeFound",
            f"{count(longest)} tokens: a block has {count(block_tokens)}, but {count(most)} on some GPUs or "
            "with vLLM 0.33, where no prompt would fill one and nothing would ever be found again; raise it "
            f"above {count(most)}",
        )
    state = " (a whole linear-attention state)" if geometry.bytes_per_prefix else ""
    return _VERDICTS.reject(
        "NothingCanBeFound",
        f"{count(longest)} tokens, and a block has {count(block_tokens)}{state}: no prompt fills one, so "
        f"nothing is ever found again, in a tier or on the device; raise it above {count(most)}",
    )
