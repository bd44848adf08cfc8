"""What may stand in a part of a pod template, and what is wrong with one where something else does."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Protocol

from kvtier_common.one_line import one_line
from kvtier_operator.api.quantity import Quantity
from kvtier_operator.errors import Problem
from kvtier_operator.planning.pod_template.merge import DIRECTIVE, REPLACE

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


class Shape(Protocol):
    """A part's shape."""

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """Everything that is wrong with a value, each with its own path; `path` is the value's."""


@dataclass(frozen=True, slots=True)
class Of:
    """A value of a type, which is the API server's to check otherwise."""

    type: type

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        if not isinstance(value, self.type) or (self.type is int and isinstance(value, bool)):
            yield Problem(path, f"expected {_WORDS[self.type]}, not {_said(value)}")


ANYTHING: Final = Of(object)
BOOLEAN: Final = Of(bool)
MAPPING: Final = Of(dict)
NUMBER: Final = Of(int)
LIST: Final = Of(list)
LINES: Final = Of(str)


@dataclass(frozen=True, slots=True)
class Line:
    """Text that conditions and terminals may show as it is."""

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from LINES.faults(value, path)
        if isinstance(value, str) and not value.isprintable():
            yield Problem(path, "has characters that cannot be printed; remove them")


TEXT: Final = Line()


@dataclass(frozen=True, slots=True)
class Word:
    """Text that is not empty; in place of none the API server would write its default."""

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from TEXT.faults(value, path)
        if not value and isinstance(value, str):
            yield Problem(path, "is empty; write a value, or leave it out")


WORD: Final = Word()


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A whole number; for a smaller one the API server would take another."""

    least: int

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from NUMBER.faults(value, path)
        if isinstance(value, int) and value < self.least:
            yield Problem(path, f"write {self.least} or more")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some texts; `why` says what is wrong with another one."""

    texts: Collection[str]
    why: str

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        if not isinstance(value, str) or value not in self.texts:
            yield Problem(path, f"{self.why}; write {' or '.join(filter(None, self.texts))}")


@dataclass(frozen=True, slots=True)
class Except:
    """Any text but some; `why` says what is wrong with those."""

    texts: Collection[str]
    why: str

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from TEXT.faults(value, path)
        if value in self.texts:
            yield _refused(path, self.why)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list that is replaced as a whole, of so many items at most."""

    of: Shape
    most: int | None = None

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from LIST.faults(value, path)
        if self.most is not None and isinstance(value, list) and len(value) > self.most:
            yield Problem(path, f"has {len(value)}, {self.most} at most; remove some")
            return
        for index, each in enumerate(value if isinstance(value, list) else ()):
            yield from self.of.faults(each, f"{path}[{index}]")


@dataclass(frozen=True, slots=True)
class Texts:
    """A mapping whose values are all text; `refused` has starts of names that may not be there, and why."""

    refused: Mapping[str, str] = field(default_factory=dict)
    values: Shape = TEXT

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from MAPPING.faults(value, path)
        for name, each in value.items() if isinstance(value, dict) else ():
            at = f"{path}[{_shown(name)}]"
            if name.startswith("$"):
                yield Problem(f"{path}.{_shown(name)}", _no_directive())
            elif why := _why_refused(name, self.refused):
                yield _refused(at, why)
            else:
                yield from (*TEXT.faults(name, at), *self.values.faults(each, at))


@dataclass(frozen=True, slots=True)
class Quantities:
    """Amounts by the names of resources; those in `required` must be there, `refused` is as of Texts."""

    required: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from MAPPING.faults(value, path)
        if not isinstance(value, dict):
            return
        yield from _missing(value, self.required, path)
        for name, each in value.items():
            at = f"{path}[{_shown(name)}]"
            yield from TEXT.faults(name, at)
            if why := _why_refused(name, self.refused):
                yield _refused(at, why)
                continue
            if not isinstance(each, str | int):
                yield Problem(at, f"expected a quantity such as 500m, not {_said(each)}; quote it")
                continue
            try:
                Quantity(each)
            except ValueError as error:
                yield Problem(at, str(error))


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with fields.

    Attributes:
        taken: What may stand in it.
        refused: Why other fields may not; what neither has is unknown.
        replaceable: Whether `$patch: replace` may stand in it.
        required: Fields that must be there.
        absent: What is said of one that is not.
    """

    taken: Mapping[str, Shape]
    refused: Mapping[str, str] = field(default_factory=dict)
    replaceable: bool = False
    required: tuple[str, ...] = ()
    absent: str = _REQUIRED

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from MAPPING.faults(value, path)
        if not isinstance(value, dict):
            return
        yield from _missing(value, self.required, path, self.absent)
        for name, each in value.items():
            below = f"{path}.{_shown(name)}"
            if name in self.taken:
                yield from self.taken[name].faults(each, below)
            elif name in self.refused:
                yield _refused(below, self.refused[name])
            elif not (self.replaceable and (name, each) == (DIRECTIVE, REPLACE)):
                yield Problem(below, self._unknown(name))

    def _unknown(self, name: str) -> str:
        if not name.startswith("$"):
            if near := get_close_matches(name, self.taken, 1, _SIMILARITY):
                return f"is not taken here; did you mean {near[0]}?"
            return f"is not taken here; the fields here are {', '.join(self.taken)}"
        return _no_directive(f"but {DIRECTIVE}: {REPLACE}" if self.replaceable else "here")


@dataclass(frozen=True, slots=True)
class Items:
    """A list of mappings that are merged by a field.

    Attributes:
        key: That field.
        item: Shape of an item.
        named: Shapes of items of certain names, in its place.
        kept: Names of items that stay as kvtier has them.
    """

    key: str
    item: Fields
    named: Mapping[object, Fields] = field(default_factory=dict)
    kept: Container[object] = ()

    def faults(self, value: object, path: str) -> Iterator[Problem]:
        """As Shape."""
        yield from LIST.faults(value, path)
        seen = set[object]()
        for index, each in enumerate(value if isinstance(value, list) else ()):
            name = each.get(self.key) if isinstance(each, dict) else None
            if not isinstance(name, str | int):
                yield Problem(f"{path}[{index}]", f"needs a {self.key}, by which it is merged")
                continue
            at = f"{path}[{_shown(name)}]"
            if name in seen:
                yield Problem(at, "is there twice; keep one")
            elif name in self.kept:
                yield Problem(at, f"is kvtier's own; take another {self.key}")
            else:
                yield from self.named.get(name, self.item).faults(each, at)
            seen.add(name)


def _shown(name: object) -> str:
    """A name in a path, which is a part of a line."""
    return one_line(str(name), _MOST_SHOWN)


def _said(value: object) -> str:
    """Its type alone: a value may be a secret."""
    return next((words for type_, words in _WORDS.items() if isinstance(value, type_)), "a number")


def _refused(path: str, why: str) -> Problem:
    return Problem(path, f"{why}; remove it")


def _why_refused(name: str, refused: Mapping[str, str]) -> str:
    """Of the first start that a name has; empty where it has none."""
    return next((why for start, why in refused.items() if name.startswith(start)), "")


def _no_directive(where: str = "here") -> str:
    return f"a template adds and changes: it takes no directive {where}; remove it"


def _missing(
    value: Mapping[str, Any], required: Iterable[str], path: str, absent: str = _REQUIRED
) -> Iterator[Problem]:
    return (Problem(f"{path}.{name}", absent) for name in required if name not in value)
