"""From a parsed YAML document to a KVCacheTier, or to one clear line for each thing that is wrong with it."""

import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from kvtier_operator.api.base import ApiModel
from kvtier_operator.api.resource import API_VERSION, KIND, KVCacheTier, Spec
from kvtier_operator.api.schema.complaints import complaint, show_value
from kvtier_operator.errors import InvalidInputError, Problem

MOST_SPEC_BYTES: Final = 64 << 10
"""As JSON, with defaults."""
# Deeper than any resource; a document nested further is a mistake or an attack.
_MAX_DEPTH: Final = 64
# etcd takes 1.5 MiB (its --max-request-bytes), so a resource cannot have as many values as this.
_MAX_VALUES: Final = 200_000


def spec_size(spec: Spec) -> int:
    """Bytes of a spec as the API server has it."""
    return len(spec.model_dump_json(by_alias=True, exclude_none=True).encode())


def size_problem(spec_bytes: int) -> Problem:
    """What is wrong with one of that size."""
    return Problem(
        "spec",
        f"{spec_bytes:,} bytes as JSON, {MOST_SPEC_BYTES:,} at most: shorten its lists; values of engine.env can come "
        "from a ConfigMap (valueFrom)",
    )


def parse_resource(document: object, source: str) -> KVCacheTier:
    """Validates one document as the API server would, the rules that it leaves to CEL, and the spec's size.

    Args:
        document: A YAML or JSON document as plain Python values.
        source: Where it came from, for the error (a file's name).

    Returns:
        The resource, with defaults filled in.

    Raises:
        InvalidInputError: With one problem for every wrong field.
    """
    if not isinstance(document, dict):
        raise InvalidInputError(
            source, Problem("", f"not a {KIND}: expected apiVersion, kind, metadata and spec")
        )
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != expected:
            raise InvalidInputError(source, Problem(field, _wrong_constant(document.get(field), expected)))
    try:
        text = json.dumps(_without_nulls(document))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            source, Problem("", f"cannot be read as JSON, as Kubernetes does: {error}")
        ) from error
    if "\\u0000" in text and (fields := [*_with_zero(document, "")]):
        message = "has a zero character, which no path or argument takes; remove it"
        raise InvalidInputError(source, *(Problem(field, message) for field in fields))
    try:
        # JSON's own types, strictly: "4" is no number and true is no 1, as for the API server.
        resource = KVCacheTier.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = [complaint(error) for error in error.errors(include_url=False)]
        raise InvalidInputError(source, *problems) from None
    if problems := _without_what_goes([*_broken_rules(resource, "")]):
        raise InvalidInputError(source, *problems)
    if (spec_bytes := spec_size(resource.spec)) > MOST_SPEC_BYTES:
        raise InvalidInputError(source, size_problem(spec_bytes))
    return resource


def _wrong_constant(value: object, expected: str) -> str:
    return f"is required: write {expected}" if value is None else f"{show_value(value)} is not {expected}"


class _Counter:
    """How many values a document still may have; YAML aliases can make a few lines millions of them."""

    def __init__(self) -> None:
        self.left = _MAX_VALUES


def _without_nulls(value: object, depth: int = 0, counter: _Counter | None = None) -> object:
    """The document without fields that are null, which for the API server are fields that are not there."""
    counter = counter or _Counter()
    counter.left -= 1
    if depth > _MAX_DEPTH or counter.left < 0:
        raise ValueError("nested too deeply or too large for a resource")
    match value:
        case dict():
            return {
                key: _without_nulls(item, depth + 1, counter)
                for key, item in value.items()
                if item is not None
            }
        case list():
            return [_without_nulls(item, depth + 1, counter) for item in value]
        case _:
            return value


def _with_zero(value: object, path: str) -> Iterator[str]:
    """Paths of the fields whose text has a zero character, or whose names have one."""
    match value:
        case str() if "\0" in value:
            yield path
        case dict():
            for key, item in value.items():
                yield from _with_zero(key, path)
                yield from _with_zero(item, f"{path}.{key}".removeprefix("."))
        case list():
            for index, item in enumerate(value):
                yield from _with_zero(item, f"{path}[{index}]")


def _without_what_goes(broken: list[tuple[bool, Problem]]) -> list[Problem]:
    """What is wrong, without what is below a field that has to go anyway."""
    gone = tuple(f"{problem.field}{below}" for goes, problem in broken if goes for below in ".[")
    return [problem for _, problem in broken if not problem.field.startswith(gone)]


def _broken_rules(model: ApiModel, path: str) -> Iterator[tuple[bool, Problem]]:
    """What the rules that join several fields have to say of a model and of everything below it, and whether the field has to go."""
    for rule in model.rules():
        if not rule.holds(model):
            said = rule.said_of(model) if rule.said_of else rule.message
            yield rule.removes_field, Problem((path + rule.field).removeprefix("."), said)
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        below = f"{path}.{info.alias}"
        if isinstance(value, ApiModel):
            yield from _broken_rules(value, below)
        elif isinstance(value, list):
            yield from ((False, problem) for problem in _duplicates(value, info, below))
            for index, item in enumerate(value):
                if isinstance(item, ApiModel):
                    yield from _broken_rules(item, f"{below}[{index}]")


def _duplicates(items: list[Any], info: FieldInfo, path: str) -> Iterator[Problem]:
    """Items that a list-map or a set must not have twice."""
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    match extra.get("x-kubernetes-list-type"), extra.get("x-kubernetes-list-map-keys"):
        case "map", [str(key)]:
            values, suffix = [getattr(item, key) for item in items], f".{key}"
        case "set", _:
            values, suffix = items, ""
        case _:
            return
    first: dict[object, int] = {}
    for index, value in enumerate(values):
        if value in first:
            at = f"{path}[{index}]{suffix}".removeprefix(".")
            yield Problem(at, f"{show_value(value)} is there twice, first at index {first[value]}; keep one")
        first.setdefault(value, index)
