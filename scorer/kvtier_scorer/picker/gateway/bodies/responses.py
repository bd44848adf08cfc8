"""`/v1/responses`."""

from typing import Final

from kvtier_scorer.errors import BadFieldError
from kvtier_scorer.picker.gateway.bodies.fields import (
    CONTENT,
    MESSAGE,
    Body,
    digest,
    required_list,
    text_prompt,
    type_name,
)
from kvtier_scorer.picker.gateway.bodies.messages import conversation, preamble
from kvtier_scorer.scheduling.model import Prompt

_PREAMBLE: Final = ("reasoning", "tools")


def responses(body: Body) -> Prompt:
    """The prompt: tools, instructions, the input's items.

    What `previous_response_id` names is known to the engine alone, and is not seen here.

    Raises:
        BadFieldError: A field is missing or wrong.
    """
    parts = preamble(body, _PREAMBLE)
    instructions = body.get("instructions")
    if isinstance(instructions, str):
        parts.append(MESSAGE + b"system" + CONTENT + instructions.encode())
    elif instructions is not None:
        parts.append(MESSAGE + digest(instructions, "instructions"))
    given = body.get("input")
    if isinstance(given, str):
        parts.append(MESSAGE + b"user" + CONTENT + given.encode())
    elif given is None or isinstance(given, list):
        parts += conversation(required_list(body, "input"), "input")
    else:
        raise BadFieldError("input", f"must be a string or a list, not {type_name(given)}")
    return text_prompt(body, b"".join(parts))
