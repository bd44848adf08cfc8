"""What every way to find tokens offers."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.scheduling.model import Prompt

TokenIds = NDArray[np.uint32]


class Tokenizer(Protocol):
    """Finds the tokens of prompts."""

    async def tokenize(self, prompt: Prompt, body: Mapping[str, Any]) -> TokenIds | None:
        """The tokens as the engine will see them, or None where they have to be estimated. Never raises.

        Args:
            prompt: As it was read from the body.
            body: The parsed body of the request.
        """

    async def close(self) -> None:
        """Lets go of connections."""
