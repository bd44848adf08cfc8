"""Prompts as people give them, for engines: a line of JSON each."""

import json
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json, parse_json_object
from kvtier_operator.errors import InvalidInputError, Problem

MOST_BYTES: Final = 16 << 20
_FORMS: Final = ("prompt", "messages", "tokens")
"""Of a prompt, as kvtier_connector.serve reads them: its text, a chat's messages, token ids."""


def one_prompt(content: bytes) -> bytes:
    """A line for one prompt: an object in JSON as it is, anything else as text.

    Raises InvalidInputError: there is nothing, or it is no text.
    """
    text = _text(content, "the prompt")
    if not text.strip():
        raise InvalidInputError("", Problem("", "the prompt is empty: give its text"))
    try:
        value = parse_json(content, most_bytes=MOST_BYTES)
    except MalformedError:
        value = None
    is_prompt = isinstance(value, dict) and any(form in value for form in _FORMS)
    return _line(value if is_prompt else {"prompt": text})


def salt_of(line: bytes) -> str:
    """The cache_salt of a prompt's line; empty without one."""
    return str(parse_json_object(line, most_bytes=2 * MOST_BYTES).get("cache_salt") or "")


def prompts_in(content: bytes, source: str) -> bytes:
    """The lines of a file with one prompt each, without empty ones. Raises InvalidInputError: one is none."""
    lines = [
        _line(_prompt(line, source, number))
        for number, line in enumerate(_text(content, source).splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise InvalidInputError(source, Problem("", "has no prompts: write a JSON object a line"))
    return b"".join(lines)


def _prompt(line: str, source: str, number: int) -> dict[str, Any]:
    wanted = f"write an object with one of {', '.join(_FORMS)}"
    try:
        value = parse_json(line.encode(), most_bytes=MOST_BYTES)
    except MalformedError as error:
        raise InvalidInputError(source, Problem(f"line {number}", f"{error}; {wanted}")) from error
    if not isinstance(value, dict) or sum(form in value for form in _FORMS) != 1:
        raise InvalidInputError(source, Problem(f"line {number}", f"is not a prompt; {wanted}"))
    return value


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _text(content: bytes, what: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError("", Problem("", f"{what} is not text in UTF-8")) from error
