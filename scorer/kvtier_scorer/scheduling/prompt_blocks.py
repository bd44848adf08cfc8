"""A prompt as the blocks that the index knows."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.settings.model import PrefixSettings
from kvtier_scorer.index.chain import prefix_seed, text_hashes, token_hashes
from kvtier_scorer.scheduling.model import Prompt

BYTES_PER_TOKEN: Final = 4
"""Of text that was not tokenized, as the other pickers take it (gateway-api-inference-extension v1.5.0,
dataproducer/approximateprefix, averageCharactersPerToken)."""


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
