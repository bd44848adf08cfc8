"""Tokens of one KV block that vLLM is given, where the resource leaves them to the device."""

from collections.abc import Mapping
from typing import Final

from kvtier_operator.api.engine import Device, EngineSpec

DEFAULT_BLOCK_TOKENS: Final[Mapping[Device, int]] = {Device.CUDA: 16, Device.CPU: 128}
"""What vLLM takes without --block-size: config/cache.py, DEFAULT_BLOCK_SIZE; on a CPU platforms/cpu.py,
check_and_update_config (0.32) and update_block_size_for_backend (0.33)."""


def engine_block_tokens(engine: EngineSpec) -> int:
    """Tokens of a block, before vLLM raises them for a linear-attention state."""
    return engine.block_size or DEFAULT_BLOCK_TOKENS[engine.device]
