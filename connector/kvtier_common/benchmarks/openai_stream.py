"""What an OpenAI-compatible server streams, line by line, and how it words an error. No I/O."""

import json
from collections.abc import Mapping
from typing import Any, Final

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
    event = json.loads(data)
    if not isinstance(event, dict):
        raise ValueError("an event is no object")  # noqa: TRY004 - of what a server sends, not of an argument
    if "error" in event:
        raise StreamedError(error_message(data))
    return event


def text_of(event: Mapping[str, Any]) -> str:
    """The piece of text that an event brings; empty for none."""
    choice = (event.get("choices") or [{}])[0]
    return choice.get("text") or (choice.get("delta") or {}).get("content") or ""


def error_message(body: bytes) -> str:
    """The message of an error as such servers wrap it, in one line."""
    text = body.decode(errors="replace")
    try:
        wrapped = json.loads(text)
        error = wrapped.get("error", wrapped)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        pass
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}..."
