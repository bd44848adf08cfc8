"""What every way to find tokens offers."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.scheduling.model import Prompt

TokenIds = NDArray[np.uint32]


class Tokenizer(Protocol):
    """Finds the tokens of prompts.

    In two steps, so that nobody holds a parsed body, many times its bytes, while an answer is waited for.
    """

    @property
    def skipped_pods(self) -> int:
        """Pods that are not asked for now, because they do not answer, or too slowly."""

    def tokenize_request(self, prompt: Prompt, body: Mapping[str, Any]) -> bytes | None:
        """What `tokenize` needs to know; None where tokens have to be estimated. Never raises.

        It is called on a thread of its own.

        Args:
            prompt: As it was read from the body, of text.
            body: The parsed body of the request.
        """

    async def tokenize(self, request: bytes) -> TokenIds | None:
        """The tokens as the engine will see them, or None where they have to be estimated. Never raises."""

    async def close(self) -> None:
        """Lets go of connections."""
