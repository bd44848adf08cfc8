"""What is asked of the scheduler, a prompt as the blocks that the index knows, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings import PrefixSettings
from kvtier_scorer.index.chain import prefix_seed, text_hashes, token_hashes

BYTES_PER_TOKEN: Final = 4
"""Of text that was not tokenized, as the other pickers take it (gateway-api-inference-extension v1.5.0,
dataproducer/approximateprefix, averageCharactersPerToken)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What decides which KV blocks a request can share."""

    model: str  # the model's name as the client gives it; a LoRA adapter is asked for by its own name
    salt: str  # the request's cache_salt; empty without one
    # the prompt as UTF-8 with its parts in the order in which the engine sees them; read where `token_ids` is
    # None, at an estimated 4 bytes a token
    text: bytes
    # the prompt's tokens (uint32), where a tokenizer or the client told them
    token_ids: NDArray[np.uint32] | None = None


@dataclass(frozen=True, slots=True)
class PickRequest:
    """A request that needs a pod."""

    prompt: Prompt
    subset: frozenset[str] | None = None  # addresses (`ip:port`) that it may go to; None for every pod
    priority: int = 0  # below 0 a request may be shed while every pod is saturated
    retain_s: float = 0.0  # for how long, it says, the prompt is likely to be used again


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why it was this pod."""

    candidates: int  # pods among which it was picked
    scores: Mapping[str, float]  # of the pod, by scorer, before weights
    queue_depth: int  # of its last reading
    picked: int  # requests sent to it since then
    kv_cache_utilization: float  # of its last reading


@dataclass(frozen=True, slots=True)
class Pick:
    """The pod that a request goes to."""

    address: str
    pod_name: str
    pod: int  # its number in the pod table
    # chained hashes (uint64) of the prompt's blocks, for the index to learn once it is sent
    hashes: NDArray[np.uint64]
    prompt_tokens: int  # tokens of the prompt, estimated where it was not tokenized
    # tokens that each tier of the chosen pod is believed to hold, from the first on
    matched_tokens: Mapping[Tier, int]
    score: float
    reasons: Reasons | None = None  # None where nobody asked
    retain_s: float = 0.0  # as the request says


def prompt_tokens(prompt: Prompt) -> int:
    """Tokens of the prompt, estimated where it was not tokenized."""
    if prompt.token_ids is not None:
        return len(prompt.token_ids)
    return -(-len(prompt.text) // BYTES_PER_TOKEN)


def block_hashes(prompt: Prompt, prefix: PrefixSettings | None) -> NDArray[np.uint64]:
    """Chained hashes of the prompt's full blocks; none without a prefix scorer.

    Tokens and text never match one another: the index knows a prompt in the form in which it came.
    """
    if prefix is None:
        return np.empty(0, np.uint64)
    seed = prefix_seed(prompt.model, prompt.salt, tokens=prompt.token_ids is not None)
    if prompt.token_ids is not None:
        return token_hashes(prompt.token_ids, seed, prefix.block_tokens, prefix.max_blocks)
    return text_hashes(prompt.text, seed, prefix.block_tokens * BYTES_PER_TOKEN, prefix.max_blocks)
