"""Whether the device takes this block size."""

from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.planning.block_tokens import DEFAULT_BLOCK_TOKENS, engine_block_tokens
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import round_up

_VERDICTS: Final = Verdicts("block-size", "spec.engine.blockSize")
_CPU_MULTIPLE: Final = 32  # vLLM 0.32, platforms/cpu.py and v1/attention/backends/cpu_attn.py
_CUDA_MULTIPLE: Final = 16  # vLLM 0.32, v1/attention/backends/flash_attn.py, get_supported_kernel_block_sizes


def block_size(given: CheckInput) -> CheckResult:
    """CPU attention of vLLM needs multiples of 32 tokens, CUDA attention multiples of 16."""
    tokens = engine_block_tokens(given.spec.engine)
    if given.spec.engine.device is Device.CPU:
        if given.geometry.mla:
            return _VERDICTS.warn(
                "PrefixCachingOff",
                "vLLM turns prefix caching off for MLA models on a CPU without AMX (platforms/cpu.py): "
                "the tiers would stay empty; use a model with KV heads, or a CPU with AMX",
                field="spec.engine.device",
            )
        if tokens % _CPU_MULTIPLE:
            return _VERDICTS.reject(
                "BlockSizeNotSupported",
                f"{tokens} tokens: vLLM's CPU attention needs a multiple of {_CPU_MULTIPLE}; "
                f"set it to {round_up(tokens, _CPU_MULTIPLE)}, or to "
                f"{DEFAULT_BLOCK_TOKENS[Device.CPU]}, vLLM's own choice",
            )
    elif tokens % _CUDA_MULTIPLE:
        return _VERDICTS.reject(
            "BlockSizeNotSupported",
            f"{tokens} tokens: vLLM's CUDA attention needs a multiple of {_CUDA_MULTIPLE}; "
            f"set it to {round_up(tokens, _CUDA_MULTIPLE)}",
        )
    if given.geometry.block_tokens != tokens:
        return _VERDICTS.warn(
            "BlockSizeRaised",
            f"vLLM raises {tokens} to {given.geometry.block_tokens} tokens, so that a block holds a whole "
            "linear-attention state; shorter prefixes are not cached",
        )
    return _VERDICTS.passed(f"{tokens} tokens suit device {given.spec.engine.device}")
