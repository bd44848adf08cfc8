"""Options of `vllm serve`, and the words of spec.engine.extraArgs that it refuses, as it reads them.

Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33; Python's argparse.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.api.spec.command_line import expand_sizes, whole_number

_FILE: Final = "serve_options.json"
_BOTH: Final = "both"
_ENVIRONMENT: Final = "environment"


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
    OBJECT = "json object"
    JSON_OR_TEXT = "json or text"


class Count(StrEnum):
    """How many values follow an option that takes some."""

    ONE = "1"
    ONE_OR_NONE = "?"
    ONE_OR_MORE = "+"


class Bound(StrEnum):
    """A side on which numbers end."""

    AT_LEAST = "at_least"
    ABOVE = "above"
    AT_MOST = "at_most"
    BELOW = "below"

    def holds(self, number: float, limit: float) -> bool:
        """Whether a number keeps within it; one that is not a number does not."""
        return bool(_COMPARISONS[self](number, limit))


_COMPARISONS: Final = {
    Bound.AT_LEAST: operator.ge,
    Bound.ABOVE: operator.gt,
    Bound.AT_MOST: operator.le,
    Bound.BELOW: operator.lt,
}


@dataclass(frozen=True, slots=True)
class Option:
    """What an option takes."""

    takes: Takes = Takes.NOTHING  # what a value is read as
    or_none: bool = False  # whether an empty value and `None` are taken, too
    count: Count = Count.ONE  # how many values follow
    choices: tuple[str, ...] = ()  # the only values; empty where any will do
    # of a number that the parser takes: outside of them vLLM ends at start
    bounds: tuple[tuple[Bound, float], ...] = ()
    known: tuple[str, ...] = ()  # texts that vLLM has a meaning for; a plugin may bring more


@cache
def serve_options(minor: int) -> Mapping[str, Option]:
    """Every name of every option of this minor, with its dashes."""
    tables = _tables()
    return {name: _option(entry) for name, entry in {**tables[_BOTH], **tables[str(minor)]}.items()}


@cache
def variables_read(minor: int) -> frozenset[str]:
    """Environment variables of vLLM's own name that this minor reads."""
    names = _tables()[_ENVIRONMENT]
    return frozenset((*names[_BOTH], *names[str(minor)]))


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    tables: Mapping[str, Mapping[str, Any]] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return tables


def _option(entry: Mapping[str, Any]) -> Option:
    return Option(
        takes=Takes(entry.get("takes", Takes.NOTHING)),
        or_none=entry.get("or_none", False),
        count=Count(entry.get("values", Count.ONE)),
        choices=tuple(entry.get("choices", ())),
        known=tuple(entry.get("known", ())),
        bounds=tuple((Bound(name), limit) for name, limit in entry.get("bounds", {}).items()),
    )


# Source: vllm/utils/argparse_utils.py (human_readable_int) and vllm/engine/arg_utils.py (optional_type,
# union_dict_and_str), 0.32 and 0.33.
_AUTO: Final = -1
_OBJECT: Final = re.compile(r"(?s)\s*{.*}\s*")
_NONE: Final = frozenset({"", "None"})
_WORDS: Final = {
    Takes.INT: "a whole number",
    Takes.FLOAT: "a number",
    Takes.SIZE: "a whole number, or one such as 8k",
    Takes.SIZE_OR_AUTO: "a whole number, one such as 8k, or auto",
    Takes.JSON: "JSON",
    Takes.OBJECT: "a JSON object",
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


def is_within_bounds(value: str, option: Option) -> bool:
    """Whether a value that the parser takes is one that vLLM starts with."""
    if not option.bounds or (option.or_none and value in _NONE):
        return True
    number = _READ[option.takes](value)
    return (
        isinstance(number, int | float)
        and math.isfinite(number)
        and all(bound.holds(number, limit) for bound, limit in option.bounds)
    )


def values_in_words(option: Option) -> str:
    """What it takes."""
    if option.bounds:
        bounds = (f"{bound.replace('_', ' ')} {limit:g}" for bound, limit in option.bounds)
        ends = {bound for bound, _ in option.bounds} & {Bound.AT_MOST, Bound.BELOW}
        kind = _WORDS[option.takes] if ends or option.takes is not Takes.FLOAT else "a finite number"
        return f"{kind}, {' and '.join(bounds)}"
    if not option.choices:
        return _WORDS.get(option.takes, "text")
    *others, last = option.choices
    return f"{', '.join(others)} or {last}" if others else last


def _reads(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


def _int(value: str) -> int:
    int(value)  # which takes no 8k
    return whole_number(value)


def _size_or_auto(value: str) -> int:
    return _AUTO if value.strip().lower() == "auto" else whole_number(value)


def _object(value: str) -> object:
    fields = parse_json(expand_sizes(value))
    if not isinstance(fields, dict):
        raise MalformedError("no object")
    return fields


def _json_or_text(value: str) -> object:
    return parse_json(value) if _OBJECT.fullmatch(value) else value


_READ: Final[Mapping[Takes, Callable[[str], object]]] = {
    Takes.INT: _int,
    Takes.FLOAT: float,
    Takes.SIZE: whole_number,
    Takes.SIZE_OR_AUTO: _size_or_auto,
    Takes.JSON: parse_json,
    Takes.OBJECT: _object,
    Takes.JSON_OR_TEXT: _json_or_text,
}


# Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33; Python's argparse.
_NEGATIVE: Final = re.compile(r"-\d+|-\d*\.\d+")
_REST: Final = "--"
_LEVEL: Final = "--optimization-level"
_LEVELS: Final = frozenset({"0", "1", "2", "3"})
_ONE_LETTER: Final = 2
_SHOWN_CHARACTERS: Final = 60
_NEAR: Final = 0.75


@dataclass(frozen=True, slots=True)
class Fault:
    """A word that vLLM ends at."""

    position: int  # the item's, from 0
    message: str  # what is wrong, and what to do unless there is a nearest option
    nearest: str = ""  # the option that may be meant, of a name that there is not
    names: tuple[str, ...] = ()  # the options that an ambiguous name is the beginning of


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as argparse gets it, and the item that it comes from."""

    position: int  # the item's
    text: str  # what argparse gets
    names: tuple[str, ...] = ()  # options that it may stand for; several are too many
    joined: str | None = None  # the value that is in the same word
    is_option: bool = False  # whether argparse takes it for an option, known or not


def faults_of(extra_args: Sequence[str], options: Mapping[str, Option]) -> Iterator[Fault]:
    """Everything that vLLM would end at, in the order of the items."""
    words, faults = _translate(extra_args, options)
    yield from sorted([*faults, *_walk(words, options)], key=lambda fault: fault.position)


def _translate(extra_args: Sequence[str], options: Mapping[str, Option]) -> tuple[list[_Word], list[Fault]]:
    """Words without dotted fields, which vLLM makes JSON of, and faults of those fields."""
    words: list[_Word] = []
    faults: list[Fault] = []
    texts = [*enumerate(extra_args)]
    while texts:
        position, text = texts.pop(0)
        if text.startswith("-O") and text != "-O":
            words += _read([(position, _LEVEL), (position, text[2:].removeprefix("="))], options)
            continue
        if text == "-O" and texts and texts[0][1] in _LEVELS:
            text = _LEVEL
        name, is_joined, _ = text.partition("=")
        if name.startswith("-") and "." in name:
            if not is_joined and not texts:
                faults.append(Fault(position, f"{_shorten(text)} needs a value"))
            texts = texts if is_joined else texts[1:]
            [word] = _read([(position, _with_dashes(name.partition(".")[0]))], options)
            faults += _of_field(word, options)
            continue
        words += _read([(position, text)], options)
    return words, faults


def _of_field(word: _Word, options: Mapping[str, Option]) -> Iterator[Fault]:
    if len(word.names) != 1:
        yield _no_option(word, options)
        return
    option = options[word.names[0]]
    if option.takes is Takes.NOTHING or not is_taken("{}", option):
        yield Fault(word.position, f"{word.names[0]} has no fields: remove what follows its name")


def _read(texts: list[tuple[int, str]], options: Mapping[str, Option]) -> list[_Word]:
    return [_word(position, text, options) for position, text in texts]


def _word(position: int, text: str, options: Mapping[str, Option]) -> _Word:
    """What argparse takes a word for (_parse_optional and _get_option_tuples)."""
    text = _with_dashes(text)
    if not text.startswith("-") or text == "-":
        return _Word(position, text)
    name, is_joined, value = text.partition("=")
    joined = value if is_joined else None
    if text in options:
        return _Word(position, text, (text,), is_option=True)
    if is_joined and name in options:
        return _Word(position, text, (name,), joined, is_option=True)
    if matches := tuple(option for option in options if option.startswith(name)):
        return _Word(position, text, matches, joined, is_option=True)
    letter = text[:_ONE_LETTER]
    if letter in options and not text.startswith(_REST):
        return _Word(position, text, (letter,), text[_ONE_LETTER:], is_option=True)
    is_value = _NEGATIVE.fullmatch(text) is not None or " " in text
    return _Word(position, text, is_option=not is_value)


def _walk(words: list[_Word], options: Mapping[str, Option]) -> Iterator[Fault]:
    left = words
    only_values = False
    out_of_bounds: dict[str, list[Fault]] = {}  # of the last one of each option, which alone counts
    while left:
        word, left = left[0], left[1:]
        if word.text == _REST and not only_values:
            only_values = True
            continue
        if only_values or not word.is_option:
            yield _left_over(word, options)
            continue
        count = next((place for place, word in enumerate(left) if word.is_option), len(left))
        values, rest = left[:count], left[count:]
        if len(word.names) != 1:
            yield _no_option(word, options)
            left = rest
            continue
        option = options[word.names[0]]
        takes = _values_of(word, option, values)
        left = left[len(takes) :]
        yield from _of_values(word, option, takes)
        out_of_bounds[word.names[0]] = [*_out_of_bounds(word, option, takes)]
    for faults in out_of_bounds.values():
        yield from faults


def _values_of(word: _Word, option: Option, values: list[_Word]) -> list[_Word]:
    """Of the values that follow, those that the option takes."""
    if word.joined is not None or option.takes is Takes.NOTHING:
        return []
    return values if option.count is Count.ONE_OR_MORE else values[:1]


def _of_values(word: _Word, option: Option, values: list[_Word]) -> Iterator[Fault]:
    name = word.names[0]
    texts = _places_and_texts(word, values)
    if option.takes is Takes.NOTHING:
        if texts:
            yield Fault(word.position, f"{name} takes no value: give it alone")
        return
    if not texts and option.count is not Count.ONE_OR_NONE:
        yield Fault(word.position, f"{name} needs a value: {values_in_words(option)}")
    for position, value in texts:
        if not is_taken(value, option):
            yield _not_taken(position, name, value, option)


def _out_of_bounds(word: _Word, option: Option, values: list[_Word]) -> Iterator[Fault]:
    for position, value in _places_and_texts(word, values):
        if option.bounds and is_taken(value, option) and not is_within_bounds(value, option):
            yield _not_taken(position, word.names[0], value, option)


def _places_and_texts(word: _Word, values: list[_Word]) -> list[tuple[int, str]]:
    """Of an option's values, the item and the text of each."""
    if word.joined is not None:
        return [(word.position, word.joined)]
    return [(value.position, value.text) for value in values]


def _not_taken(position: int, name: str, value: str, option: Option) -> Fault:
    return Fault(position, f"{name} {_shorten(value)}: vLLM takes {values_in_words(option)}")


def _no_option(word: _Word, options: Mapping[str, Option]) -> Fault:
    name = _shorten(word.text.partition("=")[0])
    if word.names:
        several = f"{', '.join(word.names[:-1])} or {word.names[-1]}"
        return Fault(word.position, f"{name} may be {several}: write out which", names=word.names)
    # 5 ms to import: not for those who need it not
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, options, n=1, cutoff=_NEAR)
    message = f"vLLM has no option {name}{'' if near else ': remove it'}"
    return Fault(word.position, message, nearest=near[0] if near else "")


def _left_over(word: _Word, options: Mapping[str, Option]) -> Fault:
    first, _, rest = word.text.partition(" ")
    if rest and first.partition("=")[0] in options:
        return Fault(
            word.position,
            f"{_shorten(word.text)!r} is one item: make it two, {first!r} and {_shorten(rest.strip())!r}",
        )
    return Fault(
        word.position, f"{_shorten(word.text)!r} belongs to no option, and vLLM takes none: remove it"
    )


def _with_dashes(text: str) -> str:
    """Underscores are dashes in a name, up to its first dot."""
    if not text.startswith(_REST):
        return text
    name, is_joined, value = text.partition("=")
    head, dot, path = name.partition(".")
    return f"{head.replace('_', '-')}{dot}{path}{is_joined}{value}"


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
