"""Reading fields of a JSON body; each error names the field."""

from array import array
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import orjson
import xxhash
from numpy.typing import NDArray

from kvtier_scorer.errors import BadFieldError, BadRequestError
from kvtier_scorer.scheduling.model import Prompt

Body = Mapping[str, Any]

MESSAGE: Final = b"\xff"
CONTENT: Final = b"\xfe"
NEXT: Final = b"\xfd"
REST: Final = b"\xfc"
PREAMBLE: Final = b"\xfb"
DIGEST: Final = b"\xfa"
"""What stands before a message's role, its content, each further part of that, its other fields, a field
before the first message, and a digest. No UTF-8 text has these bytes: none can pretend to be another part."""
_TYPE_NAMES: Final = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}


def parse_body(body: bytes) -> Body:
    """The JSON object that a body is. Raises BadRequestError: it is not one."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise BadRequestError(f"the body must be a JSON object, not {type_name(parsed)}")
    return parsed


def type_name(value: object) -> str:
    """What a JSON value is, in a person's words."""
    return _TYPE_NAMES.get(type(value), "a number")


def optional_text(body: Body, field: str) -> str:
    """A string; empty where it is missing or null. Raises BadFieldError: it is something else."""
    value = body.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadFieldError(field, f"must be a string, not {type_name(value)}")
    return value


def required_list(body: Body, field: str) -> list[Any]:
    """A list, whose emptiness is the engines' to judge; BadFieldError if it is missing or something else."""
    value = body.get(field)
    if value is None:
        raise BadFieldError(field, "is required")
    if not isinstance(value, list):
        raise BadFieldError(field, f"must be a list, not {type_name(value)}")
    return value


def token_ids(items: list[Any], field: str) -> NDArray[np.uint32]:
    """Tokens given by their numbers. Raises BadFieldError: one is no whole number from 0 to 2^32 - 1."""
    try:
        return np.frombuffer(array("I", items), np.uint32)
    except (TypeError, OverflowError):
        raise BadFieldError(field, "must be token numbers, each from 0 to 4294967295") from None


def canonical(value: object, field: str) -> bytes:
    """A JSON value as text that does not depend on the order of keys.

    Raises BadFieldError: it is nested deeper than orjson writes; engines do not read as deep (pydantic: 200).
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        raise BadFieldError(field, "is nested too deeply") from None


def digest(value: object, field: str) -> bytes:
    """What stands for a value that is not text, such as an image: equal for equal values only.

    Raises BadFieldError: it is nested too deeply.
    """
    return DIGEST + xxhash.xxh3_128_hexdigest(canonical(value, field)).encode()


def text_prompt(body: Body, text: bytes) -> Prompt:
    """A prompt of text. Raises BadFieldError: `model` or `cache_salt` is wrong."""
    return Prompt(optional_text(body, "model"), optional_text(body, "cache_salt"), text)


def token_prompt(body: Body, tokens: NDArray[np.uint32]) -> Prompt:
    """A prompt of tokens. Raises BadFieldError: `model` or `cache_salt` is wrong."""
    return Prompt(optional_text(body, "model"), optional_text(body, "cache_salt"), b"", tokens)


def text_or_tokens(body: Body, field: str) -> Prompt:
    """A prompt that is a string, tokens, or a list of either, of which the first counts.

    An engine runs the prompts of a list beside one another; they go to one pod, chosen for the first. Raises
    BadFieldError: it is something else.
    """
    value = body.get(field)
    if isinstance(value, str):
        return text_prompt(body, value.encode())
    items = required_list(body, field) if isinstance(value, list) or value is None else None
    if items is None:
        raise BadFieldError(field, f"must be a string or a list, not {type_name(value)}")
    first = items[0] if items else None
    if isinstance(first, str):
        _check_all(items, str, field, "a string")
        return text_prompt(body, first.encode())
    if isinstance(first, list):
        _check_all(items, list, field, "a list of tokens")
        return token_prompt(body, token_ids(first, f"{field}[0]"))
    return token_prompt(body, token_ids(items, field))


def _check_all(items: list[Any], kind: type, field: str, kind_name: str) -> None:
    for place, item in enumerate(items):
        if not isinstance(item, kind):
            raise BadFieldError(
                f"{field}[{place}]", f"must be {kind_name} as the first, not {type_name(item)}"
            )
