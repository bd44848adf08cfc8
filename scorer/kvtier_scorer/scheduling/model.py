"""What is asked of the scheduler, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier


@dataclass(frozen=True, slots=True)
class Prompt:
    """What decides which KV blocks a request can share.

    Attributes:
        model: The model's name as the client gives it; a LoRA adapter is asked for by its own name.
        salt: The request's cache_salt; empty without one.
        text: The prompt as UTF-8 with its parts in the order in which the engine sees them; read where
            `token_ids` is None, at an estimated 4 bytes a token.
        token_ids: The prompt's tokens (uint32), where a tokenizer or the client told them.
    """

    model: str
    salt: str
    text: bytes
    token_ids: NDArray[np.uint32] | None = None


@dataclass(frozen=True, slots=True)
class PickRequest:
    """A request that needs a pod.

    Attributes:
        prompt: What it begins with.
        subset: Addresses (`ip:port`) that it may go to; None for every pod.
        priority: Below 0 a request may be shed while every pod is saturated.
    """

    prompt: Prompt
    subset: frozenset[str] | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Pick:
    """The pod that a request goes to.

    Attributes:
        address: `ip:port` of the chosen pod.
        pod_name: Its name.
        pod: Its number in the pod table.
        hashes: Chained hashes (uint64) of the prompt's blocks, for the index to learn once it is sent.
        prompt_tokens: Tokens of the prompt, estimated where it was not tokenized.
        matched_tokens: Tokens that each tier of the chosen pod is believed to hold, from the first on.
        score: Its weighted score.
    """

    address: str
    pod_name: str
    pod: int
    hashes: NDArray[np.uint64]
    prompt_tokens: int
    matched_tokens: Mapping[Tier, int]
    score: float
