"""From what a gateway tells of a request to what the scheduler is asked."""

import asyncio
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kvtier_scorer.errors import BadRequestError
from kvtier_scorer.picker.gateway.bodies import UNKNOWN_PROMPT, json_size, prompt_and_body
from kvtier_scorer.picker.gateway.bodies.tokenizer import Tokenizer
from kvtier_scorer.picker.gateway.protocol.events import RequestReceived
from kvtier_scorer.picker.gateway.protocol.names import PRIORITY
from kvtier_scorer.scheduling.model import PickRequest, Prompt

SWITCH_S: Final = 0.0005
"""How long the thread that reads bodies keeps the interpreter's lock while the loop waits for it. Python's
own 5 ms would be added to a neighbour's request at each of its system calls."""
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)


class RequestReader:
    """Reads requests: those that take no time at once, the others on one thread, one after the other.

    What a body becomes as objects is many times its size, and is held for one body at a time.

    Args:
        tokenizer: Finds true tokens; None to estimate, which needs no waiting.
    """

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._thread = ThreadPoolExecutor(1, "bodies")
        json_size.load_kernels()
        sys.setswitchinterval(SWITCH_S)

    def read_now(self, event: RequestReceived) -> PickRequest | None:
        """What is asked for, its tokens estimated; None where `read` has to tell.

        Raises:
            BadRequestError: The body, or the priority, makes no sense.
        """
        body = event.body
        if body is None:
            return _request(event, UNKNOWN_PROMPT)
        if self._tokenizer is not None or not json_size.is_small(body):
            return None
        return _request(event, prompt_and_body(event.head.path, body)[0])

    async def read(self, event: RequestReceived) -> PickRequest:
        """What is asked for, with its true tokens where they can be had.

        Raises:
            BadRequestError: The body, or the priority, makes no sense.
        """
        if event.body is None or json_size.is_small(event.body):
            request, to_tokenize = self._read(event)
        else:
            loop = asyncio.get_running_loop()
            request, to_tokenize = await loop.run_in_executor(self._thread, self._read, event)
        if self._tokenizer is None or to_tokenize is None:
            return request
        tokens = await self._tokenizer.tokenize(to_tokenize)
        if tokens is None:
            return request
        prompt = Prompt(request.prompt.model, request.prompt.salt, b"", tokens)
        return PickRequest(prompt, request.subset, request.priority)

    def close(self) -> None:
        """Waits for nothing: what is read now is for nobody."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, event: RequestReceived) -> tuple[PickRequest, bytes | None]:
        prompt, fields = prompt_and_body(event.head.path, event.body or b"")
        request = _request(event, prompt)
        if self._tokenizer is None or prompt is UNKNOWN_PROMPT or prompt.token_ids is not None:
            return request, None
        return request, self._tokenizer.tokenize_request(prompt, fields)


def _request(event: RequestReceived, prompt: Prompt) -> PickRequest:
    head = event.head
    return PickRequest(prompt, head.subset, _priority(head.headers.get(PRIORITY)))


def _priority(text: str | None) -> int:
    if text is None:
        return 0
    if _WHOLE.fullmatch(text) is None:
        raise BadRequestError(f"{PRIORITY}: must be a whole number of at most 10 digits")
    return int(text)
