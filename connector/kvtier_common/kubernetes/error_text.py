"""An API server's words without the values that it quotes: a field may hold a secret, a log many readers."""

import re
from typing import Final

_QUOTED: Final = re.compile(r'((?:Invalid|Duplicate) value: )"(?:[^"\\]|\\.)*(?:"|$)')
_DUMPED: Final = re.compile(r"((?:Invalid|Duplicate) value: )[^\s\"{]*\{.*\}")
"""A whole object as Go writes it (k8s.io/apimachinery, field.Error)."""
_LEFT_OUT: Final = r"\1(left out)"
_MOST_READ: Final = 16 << 10
_MOST: Final = 2000
"""Characters; webhooks say what they like."""


def without_values(message: str) -> str:
    """What is wrong and where, which the path before the value says, and no more than a person reads."""
    text = _DUMPED.sub(_LEFT_OUT, _QUOTED.sub(_LEFT_OUT, message[:_MOST_READ]))
    return text if len(text) <= _MOST else f"{text[:_MOST]} ..."
