"""`/v1/completions`."""

from kvtier_scorer.picker.gateway.bodies.fields import Body, digest, text_or_tokens, text_prompt
from kvtier_scorer.scheduling.model import Prompt


def completions(body: Body) -> Prompt:
    """The prompt: text, tokens, or a list of either.

    Raises:
        BadFieldError: A field is missing or wrong.
    """
    if body.get("prompt") is None and (embeds := body.get("prompt_embeds")) is not None:
        return text_prompt(body, digest(embeds, "prompt_embeds"))
    return text_or_tokens(body, "prompt")
