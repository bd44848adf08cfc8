"""Tokens from an engine's /tokenize, which knows the chat template, the tools and what images become."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import aiohttp
import msgspec
import numpy as np
import orjson

from kvtier_scorer.picker.bodies.fields import MESSAGE
from kvtier_scorer.picker.tokenization.tokenizer import TokenIds
from kvtier_scorer.scheduling.model import Prompt

_LOG: Final = logging.getLogger(__name__)
_OK: Final = 200
_COMPLETION: Final = ("model", "prompt", "add_special_tokens")
_CHAT: Final = (
    "model", "messages", "add_generation_prompt", "continue_final_message", "add_special_tokens",
    "chat_template", "chat_template_kwargs", "mm_processor_kwargs", "tools",
)  # fmt: skip
"""What decides the tokens (vLLM 0.32, entrypoints/serve/tokenize/protocol.py)."""


_NO_ANSWER: Final = (
    aiohttp.ClientError, TimeoutError, OSError, ValueError, msgspec.MsgspecError,
    orjson.JSONEncodeError,  # fields that are no part of the prompt are not read before
)  # fmt: skip


class _Answer(msgspec.Struct):
    tokens: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]]


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class AskEngine:
    """Asks one of the ready pods; estimates where none answers in time.

    Args:
        address: Names a ready pod (`ip:port`), another one each time if there are several; None without one.
        timeout_s: For one prompt.
    """

    def __init__(self, address: Callable[[], str | None], timeout_s: float) -> None:
        self._address = address
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None
        self._trouble = ""

    async def tokenize(self, prompt: Prompt, body: Mapping[str, Any]) -> TokenIds | None:
        """Tokens of a chat or a completion with one prompt; of nothing else."""
        question = _question(prompt, body)
        address = self._address()
        if prompt.token_ids is not None or question is None or address is None:
            return prompt.token_ids
        try:
            tokens = await self._ask(address, question)
        except _NO_ANSWER as error:
            self._tell(type(error).__name__)
            return None
        self._tell("")
        return tokens

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def _ask(self, address: str, question: Mapping[str, Any]) -> TokenIds | None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar())
        headers = {"Content-Type": "application/json"}
        async with self._session.post(
            f"http://{address}/tokenize", data=orjson.dumps(question), headers=headers, allow_redirects=False
        ) as response:
            if response.status != _OK:  # the engine refuses the request itself, and will say so
                return None
            return np.array(_ANSWER.decode(await response.read()).tokens, np.uint32)

    def _tell(self, trouble: str) -> None:
        """One line when it begins or ends to fail."""
        if trouble and not self._trouble:
            _LOG.warning("/tokenize of the engines fails (%s); tokens are estimated", trouble)
        self._trouble = trouble


def _question(prompt: Prompt, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A body may have a field of another API too, so that the prompt tells which of them was read."""
    names: Sequence[str]
    text = body.get("prompt")
    if isinstance(text, str) and text.encode() == prompt.text:
        names = _COMPLETION
    elif isinstance(body.get("messages"), list) and MESSAGE in prompt.text:
        names = _CHAT
    else:
        return None
    return {name: body[name] for name in names if body.get(name) is not None}
