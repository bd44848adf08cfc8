"""Blocks that vLLM raises: a page must hold a whole state, or cover a page of another dtype."""

import math
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.units import ceil_div, round_up

# Smallest block of a kernel that computes such models' attention (vLLM, v1/attention/backends: flash_attn.py,
# flashinfer.py, triton_attn.py; cpu_attn.py).
_KERNEL_TOKENS: Final = {Device.CUDA: 16, Device.CPU: 32}
_LATENT_ALIGNMENT_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class StatePage:
    """What a block must hold, of one layer on one rank.

    Attributes:
        state_bytes: Of a state.
        token_bytes: Of one token of an attention layer.
        latent: Whether the attention layers keep a latent.
        multiple_of: Tokens that blocks are a multiple of beside that.
    """

    state_bytes: int
    token_bytes: int
    latent: bool
    multiple_of: int = 1


def state_block_tokens(tokens: int, device: Device, page: StatePage) -> int:
    """Tokens of a block once vLLM has raised them (platforms/interface.py, _align_hybrid_block_size).

    Args:
        tokens: Of a block before that.
        device: What computes.
        page: What a block must hold.
    """
    kernel_tokens = _KERNEL_TOKENS[device]
    alignment = max(kernel_tokens, tokens, _LATENT_ALIGNMENT_TOKENS if page.latent else 1)
    alignment = math.lcm(alignment, page.multiple_of)
    raised = alignment * ceil_div(page.state_bytes, alignment * page.token_bytes)
    return max(tokens, round_up(raised, kernel_tokens))


def boundary_block_tokens(tokens: int, device: Device, own_bytes: int) -> int:
    """Tokens of a block where some layers keep the model's own dtype beside a packed one.

    vLLM raises it until a packed page covers one of the others, and takes a byte for each packed element: it
    asks the first layer's backend, which packs nothing (platforms/interface.py,
    _align_heterogeneous_kv_block_size).

    Args:
        tokens: Of a block before that.
        device: What computes.
        own_bytes: Bytes of one element of the model's own dtype.
    """
    kernel_tokens = _KERNEL_TOKENS[device]
    alignment = max(kernel_tokens, tokens)
    return max(tokens, alignment * ceil_div(own_bytes * kernel_tokens, alignment))
