"""Request bodies as prompts: what each API has in it, and messages of conversations."""

from collections.abc import Iterable
from typing import Any, Final

from kvtier_scorer.errors import BadFieldError
from kvtier_scorer.picker.gateway.bodies.fields import (
    CONTENT,
    DIGEST,
    MESSAGE,
    NEXT,
    PREAMBLE,
    REST,
    Body,
    canonical,
    digest,
    required_list,
    text_or_tokens,
    text_prompt,
    type_name,
)
from kvtier_scorer.scheduling.model import Prompt

_TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal", "thinking"})
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "type", "id", "status"})
"""Read by themselves, or no part of a prompt: a Responses item's `id` and `status` are the server's notes."""
_REFERENCE: Final = "item_reference"
_REFERENCE_FIELDS: Final = _MESSAGE_FIELDS - {"id"}  # all that such an item says is which one it means
_CHAT_PREAMBLE: Final = (
    "chat_template", "chat_template_kwargs", "reasoning_effort", "documents", "tools", "functions",
)  # fmt: skip
_RESPONSES_PREAMBLE: Final = ("reasoning", "tools")


def preamble(body: Body, fields: Iterable[str]) -> list[bytes]:
    """What chat templates put before the first message, where it is given: tools above all.

    Raises BadFieldError: one is nested too deeply.
    """
    return [
        PREAMBLE + name.encode() + canonical(body[name], name)
        for name in fields
        if body.get(name) is not None
    ]


def conversation(messages: list[Any], field: str) -> list[bytes]:
    """The messages, in their order. What is no message that is known here counts as a whole, by its digest.

    Engines know forms of messages that this does not, and refuse by themselves what is none. Raises
    BadFieldError: one is nested too deeply.
    """
    parts: list[bytes] = []
    for place, item in enumerate(messages):
        _message(item, f"{field}[{place}]", parts)
    return parts


def _message(message: object, field: str, parts: list[bytes]) -> None:
    role = _role(message) if isinstance(message, dict) else None
    if not isinstance(message, dict) or role is None:
        parts += (MESSAGE, digest(message, field))
        return
    parts.append(MESSAGE + role.encode() + CONTENT)
    content = message.get("content")
    if isinstance(content, str):
        parts.append(content.encode())
    elif isinstance(content, list):
        contents = (_content_part(part, f"{field}.content[{place}]") for place, part in enumerate(content))
        parts.append(NEXT.join(contents))
    elif content is not None:
        # twice, for a list of this one part is another content
        parts.append(DIGEST + digest(content, f"{field}.content"))
    known = _REFERENCE_FIELDS if role == _REFERENCE else _MESSAGE_FIELDS
    if not message.keys() <= known:
        rest = {key: value for key, value in message.items() if key not in known and value is not None}
        if rest:
            parts.append(REST + canonical(rest, field))


def _role(message: dict[str, Any]) -> str | None:
    """Who speaks, or what the item is; None where that is no text."""
    role = message.get("role")
    if role is None:
        role = message.get("type")
    return role if isinstance(role, str) else None


def _content_part(part: object, field: str) -> bytes:
    """Text as it is; anything else, images by URL or by their data, as a digest."""
    if isinstance(part, str):
        return part.encode()
    if isinstance(part, dict) and isinstance(kind := part.get("type"), str) and kind in _TEXT_KINDS:
        for key in ("text", "refusal", "thinking"):
            if isinstance(text := part.get(key), str):
                return text.encode()
    return digest(part, field)


def chat_completions(body: Body) -> Prompt:
    """The prompt of a chat. Raises BadFieldError: a field is missing or wrong."""
    messages = required_list(body, "messages")
    return text_prompt(body, b"".join([*preamble(body, _CHAT_PREAMBLE), *conversation(messages, "messages")]))


def completions(body: Body) -> Prompt:
    """The prompt: text, tokens, or a list of either. Raises BadFieldError: a field is missing or wrong."""
    if body.get("prompt") is None and (embeds := body.get("prompt_embeds")) is not None:
        return text_prompt(body, digest(embeds, "prompt_embeds"))
    return text_or_tokens(body, "prompt")


def responses(body: Body) -> Prompt:
    """The prompt: tools, instructions, the input's items.

    What `previous_response_id` names is known to the engine alone, and is not seen here. Raises
    BadFieldError: a field is missing or wrong.
    """
    parts = preamble(body, _RESPONSES_PREAMBLE)
    instructions = body.get("instructions")
    if isinstance(instructions, str):
        parts.append(MESSAGE + b"system" + CONTENT + instructions.encode())
    elif instructions is not None:
        parts.append(MESSAGE + digest(instructions, "instructions"))
    content = body.get("input")
    if isinstance(content, str):
        parts.append(MESSAGE + b"user" + CONTENT + content.encode())
    elif content is None or isinstance(content, list):
        parts += conversation(required_list(body, "input"), "input")
    else:
        raise BadFieldError("input", f"must be a string or a list, not {type_name(content)}")
    return text_prompt(body, b"".join(parts))


def embeddings(body: Body) -> Prompt:
    """The input: text, tokens, a list of either; or, by either name, vLLM's messages or a list of those.

    Raises BadFieldError: a field is missing or wrong.
    """
    field = "input" if body.get("messages") is None else "messages"
    content = body.get(field)
    if field == "messages" or _has_messages(content):
        messages = required_list(body, field)
        first = messages[0] if messages else None
        # an engine runs the conversations of a list beside one another; they go to one pod
        parts = (
            conversation(first, f"{field}[0]") if isinstance(first, list) else conversation(messages, field)
        )
        return text_prompt(body, b"".join(parts))
    return text_or_tokens(body, field)


def _has_messages(content: Any) -> bool:  # noqa: ANN401 - a JSON value
    if not isinstance(content, list) or not content:
        return False
    first = content[0]
    return isinstance(first[0] if isinstance(first, list) and first else first, dict)
