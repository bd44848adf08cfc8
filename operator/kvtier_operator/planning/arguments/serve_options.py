"""Options of `vllm serve`, and which values they take."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvtier_common.formats.json_text import parse_json

MINORS: Final = (32, 33)
_FILE: Final = "serve_options.json"
_BOTH: Final = "both"


class Takes(StrEnum):
    """What a value is read as."""

    NOTHING = "nothing"
    TEXT = "text"
    WORD = "word"
    INT = "int"
    FLOAT = "float"
    SIZE = "size"
    SIZE_OR_AUTO = "size or auto"
    JSON = "json"
    JSON_OR_TEXT = "json or text"


class Count(StrEnum):
    """How many values follow an option that takes some."""

    ONE = "1"
    ONE_OR_NONE = "?"
    ONE_OR_MORE = "+"


@dataclass(frozen=True, slots=True)
class Option:
    """What an option takes.

    Attributes:
        takes: What a value is read as.
        or_none: Whether an empty value and `None` are taken, too.
        count: How many values follow.
        choices: The only values; empty where any will do.
    """

    takes: Takes = Takes.NOTHING
    or_none: bool = False
    count: Count = Count.ONE
    choices: tuple[str, ...] = ()


@cache
def serve_options(minor: int) -> Mapping[str, Option]:
    """Every name of every option of this minor, with its dashes."""
    tables = _tables()
    return {name: _option(entry) for name, entry in {**tables[_BOTH], **tables[str(minor)]}.items()}


@cache
def _tables() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return tables


def _option(entry: Mapping[str, Any]) -> Option:
    return Option(
        takes=Takes(entry.get("takes", Takes.NOTHING)),
        or_none=entry.get("or_none", False),
        count=Count(entry.get("values", Count.ONE)),
        choices=tuple(entry.get("choices", ())),
    )


# Source: vllm/utils/argparse_utils.py (human_readable_int) and vllm/engine/arg_utils.py (optional_type,
# union_dict_and_str), 0.32 and 0.33.
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
