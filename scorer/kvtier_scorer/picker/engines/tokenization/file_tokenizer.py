"""Tokens from a tokenizer.json, for prompts that are plain text.

Chat templates are the engine's: a chat is not told by its messages' texts alone, so it is left to estimate.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from kvtier_scorer.config.errors import PickerConfigError
from kvtier_scorer.picker.gateway.bodies.tokenizer import TokenIds
from kvtier_scorer.scheduling.model import Prompt

_SPECIAL: Final = b"+"
_PLAIN: Final = b"-"


class FileTokenizer:
    """A tokenizer.json, read with the `tokenizers` package.

    Args:
        path: The file.

    Raises:
        PickerConfigError: The package is not installed, or the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - not installed where no file is configured
        except ImportError as error:
            raise PickerConfigError(
                "tokenization.path needs the package `tokenizers`; install it, or use mode Tokenize"
            ) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise PickerConfigError(f"tokenization.path: {path} is not a tokenizer.json: {error}") from error

    @property
    def skipped_pods(self) -> int:
        """None: nobody is asked."""
        return 0

    def tokenize_request(self, prompt: Prompt, body: Mapping[str, Any]) -> bytes | None:
        """A completion's prompt, and whether the model wants tokens of its own at its beginning."""
        text = body.get("prompt")
        # a body may have a field of another API, that its own does not read
        if not isinstance(text, str) or text.encode() != prompt.text:
            return None
        return (_PLAIN if body.get("add_special_tokens", True) is False else _SPECIAL) + prompt.text

    async def tokenize(self, request: bytes) -> TokenIds | None:
        """Its tokens, found on a thread: a long text takes a while."""
        return await asyncio.to_thread(self._encode, request)

    def _encode(self, request: bytes) -> TokenIds:
        special = request[:1] == _SPECIAL
        return np.array(
            self._tokenizer.encode(request[1:].decode(), add_special_tokens=special).ids, np.uint32
        )

    async def close(self) -> None:
        """Holds nothing that needs closing."""
