"""YAML as kubectl reads it, which is not quite as PyYAML does, and no more of it than anybody writes.

kubectl turns YAML into JSON with sigs.k8s.io/yaml, whose resolver is go-yaml v2's. Beside YAML 1.1 as PyYAML
has it, that one takes `y` and `n` for booleans and `1e9` for a number, and leaves dates and base-60 numbers
as text (`goyaml.v2/resolve.go`). A local command must not read a file differently from the cluster.

Anchors and merges (`<<`) make few lines many values: these are counted before they are made.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import yaml
from yaml.constructor import SafeConstructor
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kvtier_common.errors import MalformedError
from kvtier_common.one_line import one_line

# The C parser is ten times as fast; a PyYAML built without libyaml lacks it.
_SafeLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MOST_VALUES: Final = 200_000
"""Of a stream, with what anchors and merges repeat; etcd takes 1.5 MiB, so that no one object has as many."""
_MOST_DIRECTIVES: Final = 100
_MOST_DEPTH: Final = 100  # deeper than any Kubernetes object
_LARGEST_WRITTEN_OUT: Final = 1e21
"""Go's JSON writes larger floats with an exponent, which makes them no integers for the API server."""
_LEAST_INTEGER, _MOST_INTEGER = -(1 << 63), (1 << 64) - 1
_MOST_DIGITS: Final = 66  # of an integer of 64 bits, in base 2 with its prefix
_MOST_SHOWN: Final = 80
_MOST_MESSAGE: Final = 300
_NOTHING_BEGINS: Final = "found character"
"""How both of PyYAML's parsers begin to say it, and nothing else."""
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_BOOLEANS: Final = {**SafeConstructor.bool_values, "y": True, "n": False}


class _Place(Protocol):
    """Where something begins, counted from 0; the C parser's marks have no type of their own."""

    line: int
    column: int


class _Loader(_SafeLoader):  # type: ignore[misc] # chosen at run time
    """Composes nodes, with go-yaml v2's idea of what is a boolean or a number."""

    yaml_implicit_resolvers: Final[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for _tag, _pattern, _first in (
    (
        "bool",
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "yYnNtTfFoO",
    ),
    ("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def read_yaml(text: str | bytes) -> Iterator[object]:
    """The documents of a YAML or JSON stream, empty ones left out, as plain Python values that JSON has too.

    Raises MalformedError: the stream is not YAML, or has too many values or levels; with line and column.
    """
    try:
        _check_size(text)
        values = _Values()
        nodes = yaml.compose_all(text, Loader=_Loader)
        yield from (document for document in map(values.of, nodes) if document is not None)
    except MarkedYAMLError as error:
        problem, mark = str(error.problem or error.context or ""), error.problem_mark or error.context_mark
        if problem.startswith(_NOTHING_BEGINS) and mark:
            problem = _no_beginning(text, mark)
        raise _error_at(problem, mark) from error
    except yaml.YAMLError as error:
        raise _error_at(str(error)) from error
    except UnicodeError as error:
        raise _error_at(f"not UTF-8: {error}") from error


def _no_beginning(text: str | bytes, mark: _Place) -> str:
    """What to do about a character that nothing begins with: mostly a tab, or an @ or ` without quotes."""
    written = text if isinstance(text, str) else text.decode(errors="replace")
    character = written.split("\n")[mark.line][mark.column : mark.column + 1]
    if character == "\t":
        return "a tab does not indent in YAML; use spaces"
    return f"nothing begins with {one_line(repr(character), _MOST_SHOWN)}; quote the text, or take it away"


def _check_size(text: str | bytes) -> None:
    """The C parser composes nodes by recursion without a bound of its own, and would end the process."""
    # libyaml compares each directive with all before it
    directives = text.count(b"\n%") if isinstance(text, bytes) else text.count("\n%")
    if directives > _MOST_DIRECTIVES:
        raise _error_at(f"more than {_MOST_DIRECTIVES} directives")
    depth = count = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        count += isinstance(event, ScalarEvent | AliasEvent | CollectionStartEvent)
        if depth > _MOST_DEPTH:
            raise _too_deep(event.start_mark)
        if count > MOST_VALUES:
            raise _error_at(f"more than {MOST_VALUES:,} values; split the file", event.start_mark)


class _Made(NamedTuple):
    """What was made of a node: its value, how many values that has with all in it, levels, its pairs."""

    value: Any
    size: int = 1
    levels: int = 0
    pairs: Mapping[str, "_Made"] = MappingProxyType({})


class _Values:
    """Makes values of nodes, each node's once, however often it is repeated."""

    def __init__(self) -> None:
        self._left = MOST_VALUES
        self._made: dict[int, _Made] = {}
        self._begun = set[int]()

    def of(self, root: Node | None) -> object:
        """The value of a document's root; no other document sees its nodes."""
        self._made.clear()
        return None if root is None else self._make(root).value

    def _make(self, node: Node) -> _Made:
        if (made := self._made.get(id(node))) is not None:
            self._count(made.size, node)
            return made
        if id(node) in self._begun:
            raise _error_at("an anchor has itself within; write it out", node.start_mark)
        self._count(1, node)
        if isinstance(node, ScalarNode):
            made = _Made(_scalar(node))
        else:
            self._begun.add(id(node))
            made = self._mapping(node) if isinstance(node, MappingNode) else self._sequence(node)
            self._begun.remove(id(node))
        if made.levels > _MOST_DEPTH:
            raise _too_deep(node.start_mark)
        self._made[id(node)] = made
        return made

    def _count(self, values: int, node: Node) -> None:
        self._left -= values
        if self._left < 0:
            message = f"its anchors and merges make more than {MOST_VALUES:,} values; write out what is meant"
            raise _error_at(message, node.start_mark)

    def _sequence(self, node: Node) -> _Made:
        _check_tag(node, "seq")
        items = [self._make(item) for item in node.value]
        return _Made([item.value for item in items], *_extent(items))

    def _mapping(self, node: MappingNode) -> _Made:
        _check_tag(node, "map")
        pairs, own = dict[str, _Made](), dict[str, _Made]()
        for key, value in node.value:
            if key.tag == _MERGE:
                pairs |= self._merge(value)
                continue
            name = self._key(key)
            if name in own:
                message = f"the key {one_line(name, _MOST_SHOWN)!r} is there twice; keep one"
                raise _error_at(message, key.start_mark)
            own[name] = self._make(value)
        pairs |= own
        return _Made({name: made.value for name, made in pairs.items()}, *_extent(pairs.values()), pairs)

    def _merge(self, node: Node) -> dict[str, _Made]:
        """The pairs that a merge adds: of several mappings the first that has a key counts."""
        pairs = dict[str, _Made]()
        for mapping in reversed(node.value) if isinstance(node, SequenceNode) else (node,):
            if not isinstance(mapping, MappingNode):
                raise _error_at("<< takes a mapping, or a list of mappings", mapping.start_mark)
            pairs |= self._make(mapping).pairs
        return pairs

    def _key(self, node: Node) -> str:
        value = self._make(node).value
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, list | dict):
            raise _error_at("a key must be text", node.start_mark)
        return str(value)


def _extent(parts: Collection[_Made]) -> tuple[int, int]:
    """How many values there are with these in one more, and levels."""
    return 1 + sum(part.size for part in parts), 1 + max((part.levels for part in parts), default=0)


def _check_tag(node: Node, tag: str) -> None:
    if node.tag != f"{_TAG}{tag}":
        raise _not_json(node)


def _scalar(node: ScalarNode) -> str | int | float | bool | None:
    text = node.value
    match node.tag.removeprefix(_TAG):
        case "str" | "merge":
            return str(text)
        case "null":
            return None
        case "bool" if text.lower() in _BOOLEANS:
            return bool(_BOOLEANS[text.lower()])
        case "int" | "float" as kind:
            try:
                return _integer(text) if kind == "int" else _number(text)
            except ValueError:
                message = f"{one_line(text, _MOST_SHOWN)} is not a number that JSON has"
                raise _error_at(message, node.start_mark) from None
    raise _not_json(node)


def _number(text: str) -> int | float:
    """A number as JSON has it: 4.0 is 4, and infinities and not-a-number are none."""
    value = float(text.replace("_", "").replace(".inf", "inf"))
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and abs(value) < _LARGEST_WRITTEN_OUT else value


def _integer(text: str) -> int | float:
    """An integer with Go's prefixes: 0x, 0b, 0o, and a leading 0 for octal; beyond 64 bits a number."""
    plain = text.replace("_", "").lower()
    sign, digits = (-1 if plain.startswith("-") else 1), plain.lstrip("+-")
    if len(digits) > _MOST_DIGITS:
        return _number(plain)
    value = sign * int(re.sub(r"^0(?=[0-7]+$)", "0o", digits), 0)
    return value if _LEAST_INTEGER <= value <= _MOST_INTEGER else _number(plain)


def _not_json(node: Node) -> MalformedError:
    tag = one_line(node.tag.replace(_TAG, "!!"), _MOST_SHOWN)
    return _error_at(f"the tag {tag} does not fit; leave it out", node.start_mark)


def _too_deep(mark: _Place | None) -> MalformedError:
    return _error_at(f"more than {_MOST_DEPTH} levels deep", mark)


def _error_at(problem: str, mark: _Place | None = None) -> MalformedError:
    at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return MalformedError(f"{at}{one_line(problem, _MOST_MESSAGE)}")
