"""JSON that others wrote: no more of it than anybody writes, and one line for what is wrong with it."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.one_line import one_line

DEEPEST: Final = 64  # objects and lists within one another, where nothing else is asked for
MOST_BYTES: Final = 4 << 20  # likewise
_MOST_DIGITS: Final = 20  # of an integer of 64 bits, with its sign
_LEAST_INTEGER, _MOST_INTEGER = -(1 << 63), (1 << 64) - 1
_MOST_SHOWN: Final = 80
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def parse_json(
    text: str | bytes,  # what stands there
    *,
    most_bytes: int = MOST_BYTES,  # of the text; of one that is text already, characters
    deepest: int = DEEPEST,  # objects and lists within one another at most
    finite: bool = True,  # whether to refuse NaN and infinities, which Python writes and JSON does not have
    # whether to refuse a key that is there twice; of such the last counts otherwise
    unique_keys: bool = False,
) -> object:
    """Parse JSON; an integer beyond 64 bits becomes a float, as most readers have it.

    Raises MalformedError: it is no JSON, or longer or deeper than that.
    """
    if len(text) > most_bytes:
        raise MalformedError(f"more than {most_bytes:,} bytes")
    number = _finite if finite else float
    try:
        value: object = json.loads(  # noqa: TID251 - the one place
            text.decode() if isinstance(text, bytes) else text,
            parse_int=_integer,
            parse_float=number,
            parse_constant=number,
            object_pairs_hook=_once if unique_keys else None,
        )
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-8: {error.reason} at byte {error.start:,}") from None
    except RecursionError:
        raise _too_deep(deepest) from None
    except ValueError as error:
        raise MalformedError(str(error)) from None
    _check(value, deepest, deepest)
    return value


def parse_json_object(text: str | bytes, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The same of what has to be an object. Raises MalformedError: it is none."""
    value = parse_json(text, most_bytes=most_bytes)
    if not isinstance(value, dict):
        raise MalformedError("no JSON object")
    return value


def json_file(path: Path) -> dict[str, Any]:
    """The object in a file that somebody names.

    Raises MalformedError: it holds none; with the file's name; OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        return parse_json_object(content)
    except MalformedError as error:
        raise MalformedError(f"{path}: not JSON: {error}") from None


def _check(value: object, levels: int, deepest: int) -> None:
    """Refuse what is too deep, and halves of characters, which cannot be written again."""
    if isinstance(value, str):
        if not value.isascii() and _HALF_CHARACTER.search(value):
            raise MalformedError("text with half a character (\\ud800 to \\udfff)")
        return
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise _too_deep(deepest)
    for element in value:
        _check(element, levels - 1, deepest)
    for item in value.values() if isinstance(value, dict) else ():
        _check(item, levels - 1, deepest)


def _too_deep(deepest: int) -> MalformedError:
    return MalformedError(f"more than {deepest} objects and lists within one another")


def _integer(text: str) -> int | float:
    if len(text) <= _MOST_DIGITS + 1 and _LEAST_INTEGER <= (value := int(text)) <= _MOST_INTEGER:
        return value
    return _finite(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{one_line(text, _MOST_SHOWN)} is no number")
    return number


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {one_line(twice, _MOST_SHOWN)!r} is there twice; keep one")
    return document
