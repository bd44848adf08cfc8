"""Changes of single fields of a resource that is not parsed yet, by their paths: `spec.tiers.cpu.capacity=200Gi`."""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import read_yaml
from kvtier_operator.errors import InvalidInputError, Problem

_PART: Final = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")
Part = str | int
_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Edit:
    """A field and what it gets."""

    # as messages have it: `spec.engine.extraArgs[0]`, `spec.engine.nodeSelector[kubernetes.io/arch]`
    path: str
    value: object  # as YAML has it; None takes the field away
    if_absent: bool = False  # whether a field that is there stays


def parse_edit(text: str, source: str) -> Edit:
    """From `PATH=VALUE`, the value in YAML.

    Raises:
        InvalidInputError: There is no path or no `=`, it is one of status, or the value is no YAML.
    """
    path, equals, value = text.partition("=")
    if not equals or not _parts(path):
        message = f"{text!r} sets nothing; write PATH=VALUE, such as spec.tiers.cpu.capacity=200Gi"
        raise InvalidInputError(source, Problem("", message))
    if _parts(path)[0] == _STATUS:
        raise InvalidInputError(source, Problem(path, "kvtier alone writes status; set a field of spec"))
    try:
        documents = [*read_yaml(value)]
    except MalformedError as error:
        raise InvalidInputError(source, Problem(path, f"not YAML: {error}")) from error
    return Edit(path, documents[0] if documents else None)


def apply_edits(document: Mapping[str, Any], edits: Iterable[Edit], source: str) -> dict[str, Any]:
    """A copy of a document with some fields set; mappings on the way are made.

    Whether a resource has such fields is for its parser to say.

    Raises:
        InvalidInputError: A path leads through something that has no fields.
    """
    copy = deepcopy(dict(document))
    for edit in edits:
        *way, last = _parts(edit.path)
        place: Any = copy
        for depth, part in enumerate(way):
            place = _below(place, part, way[: depth + 1], edit, source)
        _put(place, last, edit, source)
    return copy


def _parts(path: str) -> list[Part]:
    """Names, and numbers of items; none where it is no path."""
    matches = [*_PART.finditer(path)]
    if "".join(match[0] for match in matches) != path:
        return []
    return [match[1] or (int(match[2]) if match[2].isdecimal() else match[2]) for match in matches]


def _below(place: object, part: Part, way: list[Part], edit: Edit, source: str) -> object:
    match place, part:
        case dict(), str():
            if place.get(part) is None:
                place[part] = {}
            return place[part]
        case list(), int() if part < len(place):
            return place[part]
    raise _nothing_there(way, edit, source)


def _put(place: object, part: Part, edit: Edit, source: str) -> None:
    match place, part:
        case dict(), str():
            if not edit.if_absent or place.get(part) is None:
                place[part] = edit.value
        case list(), int() if part < len(place):
            place[part] = edit.value
        case list(), int() if part == len(place):
            place.append(edit.value)
        case _:
            raise _nothing_there([part], edit, source)


def _nothing_there(way: list[Part], edit: Edit, source: str) -> InvalidInputError:
    message = f"{way[-1]} is nothing that can be set there: what is above it has no such field or item"
    if isinstance(way[-1], int):
        whole = edit.path.partition(f"[{way[-1]}]")[0]
        message = f"there is no item {way[-1]}; set the whole list, as in {whole}=[...]"
    return InvalidInputError(source, Problem(edit.path, message))
