"""What an OpenAI-compatible server streams, line by line, and how it words an error. No I/O."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.one_line import one_line

_DATA: Final = b"data:"
_DONE: Final = b"[DONE]"
_LONGEST_MESSAGE: Final = 500


class StreamedError(Exception):
    """The server says in its stream what went wrong; one line."""


def event_of(line: bytes) -> Mapping[str, Any] | None:
    """The event in a line; None for a line without one, and for the mark of the end.

    Raises:
        StreamedError: It tells of an error.
        ValueError: It is no event.
    """
    if not line.startswith(_DATA) or (data := line.removeprefix(_DATA).strip()) == _DONE:
        return None
    event = parse_json_object(data)
    if "error" in event:
        raise StreamedError(error_message(data))
    return event


def text_of(event: Mapping[str, Any]) -> str:
    """The piece of text that an event brings; empty for none."""
    match event.get("choices"):
        case [{"text": str(text)}, *_] if text:
            return text
        case [{"delta": {"content": str(text)}}, *_]:
            return text
    return ""


def usage_of(event: Mapping[str, Any]) -> Mapping[str, int]:
    """What the server counted, as far as the event tells it, one level of names into the other."""
    usage = event.get("usage")
    fields = usage if isinstance(usage, dict) else {}
    details = fields.get("prompt_tokens_details")
    both = {**fields, **(details if isinstance(details, dict) else {})}
    return {name: value for name, value in both.items() if type(value) is int}


def error_message(body: bytes) -> str:
    """The message of an error as such servers wrap it, in one line."""
    text = body.decode(errors="replace")
    try:
        wrapped = parse_json_object(text)
        error = wrapped.get("error", wrapped)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except ValueError:
        pass
    return one_line(text, _LONGEST_MESSAGE)
