"""The options of `vllm serve`, of each minor, and what each takes: serve_options.json, which is generated."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

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
