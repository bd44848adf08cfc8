"""Messages of a conversation as a prompt's text."""

from collections.abc import Iterable
from typing import Any, Final

from kvtier_scorer.picker.bodies.errors import BadFieldError
from kvtier_scorer.picker.bodies.fields import (
    CONTENT,
    MESSAGE,
    NEXT,
    PREAMBLE,
    REST,
    Body,
    as_object,
    canonical,
    digest,
    type_name,
)

_TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal", "thinking"})
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "type", "id", "status"})
"""Read by themselves, or no part of a prompt: a Responses item's `id` and `status` are the server's notes."""
_REFERENCE: Final = "item_reference"
_REFERENCE_FIELDS: Final = _MESSAGE_FIELDS - {"id"}
"""All that such an item says is which one it means."""


def preamble(body: Body, fields: Iterable[str]) -> list[bytes]:
    """What chat templates put before the first message, where it is given: tools above all.

    Raises:
        BadFieldError: One is nested too deeply.
    """
    return [
        PREAMBLE + name.encode() + canonical(body[name], name)
        for name in fields
        if body.get(name) is not None
    ]


def conversation(messages: list[Any], field: str) -> list[bytes]:
    """The messages, in their order.

    Raises:
        BadFieldError: One is not a message.
    """
    parts: list[bytes] = []
    for place, item in enumerate(messages):
        _message(as_object(item, f"{field}[{place}]"), f"{field}[{place}]", parts)
    return parts


def _message(message: Body, field: str, parts: list[bytes]) -> None:
    role = message.get("role")
    if role is None:
        role = message.get("type")
    if not isinstance(role, str):
        raise BadFieldError(f"{field}.role", "is required" if role is None else "must be a string")
    parts.append(MESSAGE + role.encode() + CONTENT)
    content = message.get("content")
    if isinstance(content, str):
        parts.append(content.encode())
    elif isinstance(content, list):
        told = (_content_part(part, f"{field}.content[{place}]") for place, part in enumerate(content))
        parts.append(NEXT.join(told))
    elif content is not None:
        raise BadFieldError(
            f"{field}.content", f"must be a string or a list of parts, not {type_name(content)}"
        )
    known = _REFERENCE_FIELDS if role == _REFERENCE else _MESSAGE_FIELDS
    if not message.keys() <= known:
        rest = {key: value for key, value in message.items() if key not in known and value is not None}
        if rest:
            parts.append(REST + canonical(rest, field))


def _content_part(part: object, field: str) -> bytes:
    """Text as it is; anything else, images by URL or by their data, as a digest."""
    if isinstance(part, str):
        return part.encode()
    part = as_object(part, field)
    if part.get("type") in _TEXT_KINDS:
        for key in ("text", "refusal", "thinking"):
            if isinstance(text := part.get(key), str):
                return text.encode()
        raise BadFieldError(f"{field}.text", "must be a string")
    return digest(part, field)
