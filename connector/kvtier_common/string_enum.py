"""Enums whose members are strings; the standard library has them from Python 3.11 on, vLLM runs in 3.10."""

import sys

__all__ = ["StrEnum"]

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """As the standard library's: a member is its value wherever it is written as text."""

        __str__ = str.__str__

        def __format__(self, format_spec: str) -> str:
            """Format the value."""
            return str.__format__(self, format_spec)
