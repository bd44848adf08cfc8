"""`/v1/embeddings`."""

from kvtier_scorer.picker.bodies.fields import Body, required_list, text_or_tokens, text_prompt
from kvtier_scorer.picker.bodies.messages import conversation
from kvtier_scorer.scheduling.model import Prompt


def embeddings(body: Body) -> Prompt:
    """The input: text, tokens, a list of either, or vLLM's messages.

    Raises:
        BadFieldError: A field is missing or wrong.
    """
    if body.get("messages") is not None:
        return text_prompt(body, b"".join(conversation(required_list(body, "messages"), "messages")))
    return text_or_tokens(body, "input")
