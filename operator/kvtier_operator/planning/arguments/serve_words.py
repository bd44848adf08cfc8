"""Which words of spec.engine.extraArgs the parser of `vllm serve` refuses, read as it reads them.

Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33; Python's argparse.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.arguments.serve_options import Count, Option, Takes, is_taken, taken

_NEGATIVE: Final = re.compile(r"-\d+|-\d*\.\d+")
_REST: Final = "--"
_LEVEL: Final = "--optimization-level"
_LEVELS: Final = frozenset({"0", "1", "2", "3"})
_ONE_LETTER: Final = 2
_SHOWN_CHARACTERS: Final = 60
_NEAR: Final = 0.75


@dataclass(frozen=True, slots=True)
class Fault:
    """A word that vLLM's parser ends at.

    Attributes:
        position: The item's, from 0.
        message: What is wrong, and what to do.
    """

    position: int
    message: str


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as argparse gets it, and the item that it comes from.

    Attributes:
        position: The item's.
        text: What argparse gets.
        names: Options that it may stand for; several are too many.
        joined: The value that is in the same word.
        is_option: Whether argparse takes it for an option, known or not.
    """

    position: int
    text: str
    names: tuple[str, ...] = ()
    joined: str | None = None
    is_option: bool = False


def faults_of(extra_args: Sequence[str], options: Mapping[str, Option]) -> Iterator[Fault]:
    """Everything that the parser would end at, in the order of the items."""
    words, faults = _translated(extra_args, options)
    yield from sorted([*faults, *_walked(words, options)], key=lambda fault: fault.position)


def _translated(extra_args: Sequence[str], options: Mapping[str, Option]) -> tuple[list[_Word], list[Fault]]:
    """Words without dotted fields, which vLLM makes JSON of, and faults of those fields."""
    words: list[_Word] = []
    faults: list[Fault] = []
    given = [*enumerate(extra_args)]
    while given:
        position, text = given.pop(0)
        if text.startswith("-O") and text != "-O":
            words += _read([(position, _LEVEL), (position, text[2:].removeprefix("="))], options)
            continue
        if text == "-O" and given and given[0][1] in _LEVELS:
            text = _LEVEL
        name, is_joined, _ = text.partition("=")
        if name.startswith("-") and "." in name:
            if not is_joined and not given:
                faults.append(Fault(position, f"{_shown(text)} needs a value"))
            given = given if is_joined else given[1:]
            [word] = _read([(position, _dashed(name.partition(".")[0]))], options)
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


def _read(given: list[tuple[int, str]], options: Mapping[str, Option]) -> list[_Word]:
    return [_word(position, text, options) for position, text in given]


def _word(position: int, text: str, options: Mapping[str, Option]) -> _Word:
    """What argparse takes a word for (_parse_optional and _get_option_tuples)."""
    text = _dashed(text)
    if not text.startswith("-") or text == "-":
        return _Word(position, text)
    name, is_joined, value = text.partition("=")
    joined = value if is_joined else None
    if text in options:
        return _Word(position, text, (text,), is_option=True)
    if is_joined and name in options:
        return _Word(position, text, (name,), joined, is_option=True)
    if found := tuple(option for option in options if option.startswith(name)):
        return _Word(position, text, found, joined, is_option=True)
    letter = text[:_ONE_LETTER]
    if letter in options and not text.startswith(_REST):
        return _Word(position, text, (letter,), text[_ONE_LETTER:], is_option=True)
    is_value = _NEGATIVE.fullmatch(text) is not None or " " in text
    return _Word(position, text, is_option=not is_value)


def _walked(words: list[_Word], options: Mapping[str, Option]) -> Iterator[Fault]:
    left = words
    only_values = False
    while left:
        word, left = left[0], left[1:]
        if word.text == _REST and not only_values:
            only_values = True
            continue
        if only_values or not word.is_option:
            yield _left_over(word, options)
            continue
        count = next((place for place, each in enumerate(left) if each.is_option), len(left))
        values, rest = left[:count], left[count:]
        if len(word.names) != 1:
            yield _no_option(word, options)
            left = rest
            continue
        option = options[word.names[0]]
        takes = _taken_of(word, option, values)
        left = left[len(takes) :]
        yield from _of_values(word, option, takes)


def _taken_of(word: _Word, option: Option, values: list[_Word]) -> list[_Word]:
    """Of the values that follow, those that the option takes."""
    if word.joined is not None or option.takes is Takes.NOTHING:
        return []
    return values if option.count is Count.ONE_OR_MORE else values[:1]


def _of_values(word: _Word, option: Option, values: list[_Word]) -> Iterator[Fault]:
    name = word.names[0]
    given = [(each.position, each.text) for each in values]
    if word.joined is not None:
        given = [(word.position, word.joined)]
    if option.takes is Takes.NOTHING:
        if given:
            yield Fault(word.position, f"{name} takes no value: give it alone")
    elif not given and option.count is not Count.ONE_OR_NONE:
        yield Fault(word.position, f"{name} needs a value: {taken(option)}")
    for position, value in given:
        if option.takes is not Takes.NOTHING and not is_taken(value, option):
            yield Fault(position, f"{name} {_shown(value)}: vLLM takes {taken(option)}")


def _no_option(word: _Word, options: Mapping[str, Option]) -> Fault:
    name = _shown(word.text.partition("=")[0])
    if word.names:
        several = f"{', '.join(word.names[:-1])} or {word.names[-1]}"
        return Fault(word.position, f"{name} may be {several}: write out which")
    # 5 ms to import: not for those who need it not
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, options, n=1, cutoff=_NEAR)
    advice = f"give {near[0]}, if that is meant, or remove it" if near else "remove it"
    return Fault(word.position, f"vLLM has no option {name}: {advice}")


def _left_over(word: _Word, options: Mapping[str, Option]) -> Fault:
    first, _, rest = word.text.partition(" ")
    if rest and first.partition("=")[0] in options:
        return Fault(
            word.position,
            f"{_shown(word.text)!r} is one item: make it two, {first!r} and {_shown(rest.strip())!r}",
        )
    return Fault(word.position, f"{_shown(word.text)!r} belongs to no option, and vLLM takes none: remove it")


def _dashed(text: str) -> str:
    """Underscores are dashes in a name, up to its first dot."""
    if not text.startswith(_REST):
        return text
    name, is_joined, value = text.partition("=")
    head, dot, path = name.partition(".")
    return f"{head.replace('_', '-')}{dot}{path}{is_joined}{value}"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
