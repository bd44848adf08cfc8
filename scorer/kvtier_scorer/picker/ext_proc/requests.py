"""From what a gateway tells of a request to what the scheduler is asked."""

from typing import Any

from kvtier_scorer.errors import BadRequestError
from kvtier_scorer.picker.bodies import UNKNOWN_PROMPT, read_prompt
from kvtier_scorer.picker.bodies.fields import parse_body
from kvtier_scorer.picker.protocol.events import Question
from kvtier_scorer.picker.protocol.names import PRIORITY
from kvtier_scorer.picker.tokenization.tokenizer import Tokenizer
from kvtier_scorer.scheduling.model import PickRequest, Prompt


def pick_request(question: Question) -> PickRequest:
    """What is asked for, its tokens estimated.

    Raises:
        BadRequestError: The body, or the priority, makes no sense.
    """
    head = question.head
    prompt = UNKNOWN_PROMPT if question.body is None else read_prompt(head.path, question.body)
    return PickRequest(prompt, head.subset, _priority(head.headers.get(PRIORITY)))


async def tokenized(request: PickRequest, body: bytes, tokenizer: Tokenizer) -> PickRequest:
    """The same with the prompt's true tokens, where they can be had."""
    prompt = request.prompt
    if prompt is UNKNOWN_PROMPT or prompt.token_ids is not None:
        return request
    parsed: Any = parse_body(body)
    tokens = await tokenizer.tokenize(prompt, parsed)
    if tokens is None:
        return request
    return PickRequest(Prompt(prompt.model, prompt.salt, b"", tokens), request.subset, request.priority)


def _priority(text: str | None) -> int:
    if text is None:
        return 0
    try:
        return int(text)
    except ValueError:
        raise BadRequestError(f"{PRIORITY}: must be a whole number, not {text[:40]!r}") from None
