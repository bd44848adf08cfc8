"""`/v1/chat/completions`."""

from typing import Final

from kvtier_scorer.picker.gateway.bodies.fields import Body, required_list, text_prompt
from kvtier_scorer.picker.gateway.bodies.messages import conversation, preamble
from kvtier_scorer.scheduling.model import Prompt

_PREAMBLE: Final = (
    "chat_template",
    "chat_template_kwargs",
    "reasoning_effort",
    "documents",
    "tools",
    "functions",
)


def chat_completions(body: Body) -> Prompt:
    """The prompt of a chat.

    Raises:
        BadFieldError: A field is missing or wrong.
    """
    messages = required_list(body, "messages")
    return text_prompt(body, b"".join([*preamble(body, _PREAMBLE), *conversation(messages, "messages")]))
