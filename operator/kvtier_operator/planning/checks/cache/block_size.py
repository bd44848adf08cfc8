"""Whether the device takes this block size."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.block_tokens import choose_block
from kvtier_operator.planning.units import round_up
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("block-size", "spec.engine.blockSize")


def block_size(given: CheckInput) -> CheckResult:
    """Each attention backend of vLLM takes multiples of some block; one that takes none is never chosen."""
    engine, geometry = given.spec.engine, given.geometry
    choice = choose_block(engine, geometry.attention, geometry.cache_dtype)
    if engine.device is Device.CPU and geometry.mla:
        return _VERDICTS.warn(
            "PrefixCachingOff",
            "vLLM turns prefix caching off for MLA models on a CPU without AMX (platforms/cpu.py): "
            "the tiers would stay empty; use a model with KV heads, or a CPU with AMX",
            field="spec.engine.device",
        )
    if choice.tokens % choice.multiple:
        where = "CPU attention" if engine.device is Device.CPU else f"attention over {geometry.attention}"
        return _VERDICTS.reject(
            "BlockSizeNotSupported",
            f"{choice.tokens} tokens: vLLM's {where} needs a multiple of {choice.multiple}; "
            f"set it to {round_up(choice.tokens, choice.multiple)}, or leave it out, and vLLM chooses",
        )
    if geometry.block_tokens != choice.tokens:
        packed = any(group.own_dtype for group in geometry.groups)
        why = (
            "of packed elements covers one that is not" if packed else "holds a whole linear-attention state"
        )
        return _VERDICTS.warn(
            "BlockSizeRaised",
            f"vLLM raises {choice.tokens} to {geometry.block_tokens} tokens, so that a block {why}; shorter "
            "prefixes are not cached, whatever is set",
            by_itself="sizes tiers and picker by it, and goes by what a running engine says",
        )
    if choice.slow_on:
        return _VERDICTS.warn(
            "SlowAttention",
            f"{choice.tokens} tokens: the fast kernels on {' and '.join(choice.slow_on)} do not take such a "
            "block, so vLLM falls to a slow one there; leave it out, and vLLM chooses, or set it to "
            f"{round_up(choice.tokens, choice.fast_multiple)}",
        )
    return _VERDICTS.passed(f"{choice.tokens} tokens suit device {engine.device}")
