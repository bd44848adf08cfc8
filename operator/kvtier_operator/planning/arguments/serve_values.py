"""Whether vLLM's parser takes a value, and what it takes in its place.

Source: vllm/utils/argparse_utils.py (human_readable_int) and vllm/engine/arg_utils.py (optional_type,
union_dict_and_str), 0.32 and 0.33.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from kvtier_common.formats.json_text import parse_json
from kvtier_operator.planning.arguments.serve_options import Option, Takes

_SIZE: Final = re.compile(r"\d+(?:\.\d+)?[kmgt]|\d+[KMGT]")
_SIZE_IN_JSON: Final = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_OBJECT: Final = re.compile(r"(?s)\s*{.*}\s*")
_NONE: Final = frozenset({"", "None"})
_WORDS: Final = {
    Takes.INT: "a whole number",
    Takes.FLOAT: "a number",
    Takes.SIZE: "a whole number, or one such as 8k",
    Takes.SIZE_OR_AUTO: "a whole number, one such as 8k, or auto",
    Takes.JSON: "JSON",
    Takes.JSON_OR_TEXT: "JSON within braces",
}


def is_taken(value: str, option: Option) -> bool:
    """Whether vLLM's parser takes this value for this option."""
    if option.or_none and value in _NONE:
        return True
    if option.takes is Takes.WORD:
        value = value.lower().replace("-", "_")
    if option.takes in _READ and not _reads(_READ[option.takes], value):
        return False
    if option.takes is Takes.INT:
        value = str(int(value))
    return not option.choices or value in option.choices


def taken(option: Option) -> str:
    """What it takes, in words."""
    return " or ".join(option.choices[-2:]) if 0 < len(option.choices) <= 2 else _listed(option)  # noqa: PLR2004 - two


def _listed(option: Option) -> str:
    if option.choices:
        return f"{', '.join(option.choices[:-1])} or {option.choices[-1]}"
    return _WORDS.get(option.takes, "text")


def _reads(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


def _size(value: str) -> object:
    return None if _SIZE.fullmatch(value.strip()) else int(value)


def _size_or_auto(value: str) -> object:
    return None if value.strip().lower() == "auto" else _size(value)


def _json(value: str) -> object:
    """VLLM writes 8k out as 8000 in JSON first."""
    return parse_json(_SIZE_IN_JSON.sub("0", value))


def _json_or_text(value: str) -> object:
    return _json(value) if _OBJECT.fullmatch(value) else value


_READ: Final[Mapping[Takes, Callable[[str], object]]] = {
    Takes.INT: int,
    Takes.FLOAT: float,
    Takes.SIZE: _size,
    Takes.SIZE_OR_AUTO: _size_or_auto,
    Takes.JSON: _json,
    Takes.JSON_OR_TEXT: _json_or_text,
}
