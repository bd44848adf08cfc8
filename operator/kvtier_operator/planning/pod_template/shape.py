"""What may stand in a part of a pod template, and what is wrong with one where something else does.

No pydantic: what is taken follows from the plan's own pods, and refusals name list items by their merge keys.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from kvtier_common.one_line import one_line
from kvtier_operator.api.quantity import Quantity
from kvtier_operator.errors import Problem
from kvtier_operator.planning.base.merge import DIRECTIVE, REPLACE

Shape = Callable[[object, str], Iterator[Problem]]
"""Everything that is wrong with a value, each with its own path; the path that it takes is the value's."""

_WORDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    dict: "a mapping",
    int: "a whole number",
    list: "a list",
    str: "text",
    type(None): "nothing",
}
_REQUIRED: Final = "is required"
_MOST_SHOWN: Final = 253
_SIMILARITY: Final = 0.8
"""More than what others of a pod's own fields have in common."""


def _of(kind: type) -> Shape:
    """A value of a type, which is the API server's to check otherwise."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield Problem(path, f"expected {_WORDS[kind]}, not {_type_name(value)}")

    return problems


ANYTHING: Final = _of(object)
BOOLEAN: Final = _of(bool)
MAPPING: Final = _of(dict)
NUMBER: Final = _of(int)
LIST: Final = _of(list)
LINES: Final = _of(str)


def text(value: object, path: str) -> Iterator[Problem]:
    """Text that conditions and terminals may show as it is."""
    yield from LINES(value, path)
    if isinstance(value, str) and not value.isprintable():
        yield Problem(path, "has characters that cannot be printed; remove them")


def word(value: object, path: str) -> Iterator[Problem]:
    """Text that is not empty; in place of none the API server would write its default."""
    yield from text(value, path)
    if value == "":
        yield Problem(path, "is empty; write a value, or leave it out")


def quantity(value: object, path: str) -> Iterator[Problem]:
    """An amount of a resource."""
    if not isinstance(value, str | int):
        yield Problem(path, f"expected a quantity such as 500m, not {_type_name(value)}; quote it")
        return
    try:
        Quantity(value)
    except ValueError as error:
        yield Problem(path, str(error))


def at_least(least: int) -> Shape:
    """A whole number; for a smaller one the API server would take another."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        yield from NUMBER(value, path)
        if isinstance(value, int) and value < least:
            yield Problem(path, f"write {least} or more")

    return problems


def choice(texts: Collection[str], why: str) -> Shape:
    """One of some texts; `why` says what is wrong with another one."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, str) or value not in texts:
            yield Problem(path, f"{why}; write {' or '.join(filter(None, texts))}")

    return problems


def text_except(texts: Collection[str], why: str) -> Shape:
    """Any text but some; `why` says what is wrong with those."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        yield from text(value, path)
        if value in texts:
            yield _refusal(path, why)

    return problems


def list_of(item: Shape, most: int | None = None) -> Shape:
    """A list that is replaced as a whole, of so many items at most."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        yield from LIST(value, path)
        items = value if isinstance(value, list) else []
        if most is not None and len(items) > most:
            yield Problem(path, f"has {len(items)}, {most} at most; remove some")
            return
        for index, part in enumerate(items):
            yield from item(part, f"{path}[{index}]")

    return problems


def by_name(values: Shape, refused: Mapping[str, str] | None = None, required: tuple[str, ...] = ()) -> Shape:
    """A mapping by names of its author's; `refused` are starts of names that may not be there, and why."""

    def problems(value: object, path: str) -> Iterator[Problem]:
        yield from MAPPING(value, path)
        if not isinstance(value, dict):
            return
        yield from (Problem(f"{path}.{name}", _REQUIRED) for name in required if name not in value)
        for name, part in value.items():
            at = f"{path}[{_in_path(name)}]"
            if name.startswith("$"):
                yield Problem(f"{path}.{_in_path(name)}", _no_directive())
            elif why := next((why for start, why in (refused or {}).items() if name.startswith(start)), ""):
                yield _refusal(at, why)
            else:
                yield from (*text(name, at), *values(part, at))

    return problems


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with fields."""

    fields: Mapping[str, Shape]  # what may stand in it
    # why other fields may not; what neither has is unknown
    refused: Mapping[str, str] = field(default_factory=dict)
    replaceable: bool = False  # whether `$patch: replace` may stand in it
    required: tuple[str, ...] = ()  # fields that must be there
    absent: str = _REQUIRED  # what is said of one that is not

    def __call__(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from MAPPING(value, path)
        if not isinstance(value, dict):
            return
        yield from (Problem(f"{path}.{name}", self.absent) for name in self.required if name not in value)
        for name, part in value.items():
            below = f"{path}.{_in_path(name)}"
            if name in self.fields:
                yield from self.fields[name](part, below)
            elif name in self.refused:
                yield _refusal(below, self.refused[name])
            elif not (self.replaceable and (name, part) == (DIRECTIVE, REPLACE)):
                yield Problem(below, self._unknown_field(name))

    def _unknown_field(self, name: str) -> str:
        if not name.startswith("$"):
            if near := get_close_matches(name, self.fields, 1, _SIMILARITY):
                return f"is not taken here; did you mean {near[0]}?"
            return f"is not taken here; the fields here are {', '.join(self.fields)}"
        return _no_directive(f"but {DIRECTIVE}: {REPLACE}" if self.replaceable else "here")


@dataclass(frozen=True, slots=True)
class Items:
    """A list of mappings that are merged by a field."""

    key: str  # that field
    item: Fields  # shape of an item
    # shapes of items of certain names, in its place
    named: Mapping[object, Fields] = field(default_factory=dict)
    kept: Container[object] = ()  # names of items that stay as kvtier has them

    def __call__(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from LIST(value, path)
        seen = set[object]()
        for index, part in enumerate(value if isinstance(value, list) else ()):
            name = part.get(self.key) if isinstance(part, dict) else None
            if not isinstance(name, str | int):
                yield Problem(f"{path}[{index}]", f"needs a {self.key}, by which it is merged")
                continue
            at = f"{path}[{_in_path(name)}]"
            if name in seen:
                yield Problem(at, "is there twice; keep one")
            elif name in self.kept:
                yield Problem(at, f"is kvtier's own; take another {self.key}")
            else:
                yield from self.named.get(name, self.item)(part, at)
            seen.add(name)


def _in_path(name: object) -> str:
    """A name in a path, which is a part of a line."""
    return one_line(str(name), _MOST_SHOWN)


def _type_name(value: object) -> str:
    """Its type alone: a value may be a secret."""
    return next((words for type_, words in _WORDS.items() if isinstance(value, type_)), "a number")


def _refusal(path: str, why: str) -> Problem:
    return Problem(path, f"{why}; remove it")


def _no_directive(where: str = "here") -> str:
    return f"a template adds and changes: it takes no directive {where}; remove it"
