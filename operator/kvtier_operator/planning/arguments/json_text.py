"""JSON without what Python's own reader takes beyond it."""

import json
import math
from typing import Final

DEEPEST: Final = 32
"""Objects and lists within one another: as far as whoever reads them follows."""


def parsed(text: str) -> object:
    """Parse JSON.

    Raises:
        ValueError: It is no JSON, or has a number that is none.
        RecursionError: It is too deep to be read at all.
    """
    found: object = json.loads(text, parse_constant=_finite, parse_float=_finite)
    return found


def is_shallow(value: object, levels: int = DEEPEST) -> bool:
    """Whether no more objects and lists than that are within one another."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(is_shallow(each, levels - 1) for each in inner)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number")
    return number
