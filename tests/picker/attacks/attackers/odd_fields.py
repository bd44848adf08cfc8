"""Bodies of every API in which one field is of another type than it should be."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

_VALUES: Final[Sequence[Any]] = ([], {}, 1, True, None, ["x"], {"x": []}, 1.5, "x")
_CHAT: Final = {"model": "fake", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}
_TOOLS: Final = {
    "model": "fake",
    "messages": [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}  # fmt: skip
_IMAGE: Final = {
    "model": "fake",
    "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}],
}


def _replaced(value: Any) -> Iterator[Any]:  # noqa: ANN401 - what JSON holds
    """The value with each part of it, itself included, replaced by each of `_VALUES`."""
    yield from _VALUES
    if isinstance(value, dict):
        for name, part in value.items():
            yield from ({**value, name: other} for other in _replaced(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in _replaced(part))


ODD: Final = tuple(
    json.dumps(body).encode() for whole in (_CHAT, _TOOLS, _IMAGE) for body in _replaced(whole)
)
