"""`/v1/embeddings`."""

from typing import Any

from kvtier_scorer.picker.gateway.bodies.fields import Body, required_list, text_or_tokens, text_prompt
from kvtier_scorer.picker.gateway.bodies.messages import conversation
from kvtier_scorer.scheduling.model import Prompt


def embeddings(body: Body) -> Prompt:
    """The input: text, tokens, a list of either; or, by either name, vLLM's messages or a list of those.

    Raises:
        BadFieldError: A field is missing or wrong.
    """
    field = "input" if body.get("messages") is None else "messages"
    given = body.get(field)
    if field == "messages" or _has_messages(given):
        messages = required_list(body, field)
        first = messages[0] if messages else None
        # an engine runs the conversations of a list beside one another; they go to one pod
        parts = (
            conversation(first, f"{field}[0]") if isinstance(first, list) else conversation(messages, field)
        )
        return text_prompt(body, b"".join(parts))
    return text_or_tokens(body, field)


def _has_messages(given: Any) -> bool:  # noqa: ANN401 - a JSON value
    if not isinstance(given, list) or not given:
        return False
    first = given[0]
    return isinstance(first[0] if isinstance(first, list) and first else first, dict)
