"""What a field is, from the CRD's schema: the API reference, and one field for `kvtier explain`."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.base import VALIDATIONS
from kvtier_operator.api.resource import API_VERSION, KIND
from kvtier_operator.api.schema.complaints import names_at, paths_named, unknown_field
from kvtier_operator.api.schema.crd import PLURAL, SHORT_NAME, Schema, openapi_schema
from kvtier_operator.errors import InvalidInputError, Problem

_INTRODUCTION: Final = f"""\
# API reference

Every field of a {KIND}: `{API_VERSION}`, namespaced, short name `kvct`, category `kvtier`. A first resource needs `spec.model.name` and
`spec.tiers.cpu.capacity`; everything else has a default or is computed. Fields marked **required** are so wherever
their parent is given.

A *quantity* is Kubernetes' own: a number with a suffix `Ki`, `Mi`, `Gi`, `Ti` (powers of 1024) or `k`, `M`, `G`,
`T` (powers of 1000), or a plain number of bytes.

`kvtier plan`, `kvtier render` and `kvtier run` refuse what the API server refuses, except what needs the stored
resource (an immutable field). The rules at the end of this page are the same in both, word for word.
"""
_SPEC_PARTS: Final = ("model", "attach", "autoscaling", "engine", "tiers", "router", "observability")
_OF_THE_KIND: Final = (KIND.lower(), PLURAL, SHORT_NAME)
_KUBERNETES_OWN: Final = f"Kubernetes' own: `kubectl explain {SHORT_NAME}.metadata`."
_ITEM: Final = re.compile(r"\[\d*\]$")
_MOST_LISTED: Final = 6
"""Of fields with the same name."""


def type_text(node: Schema, choices: Callable[[Sequence[str]], str] = " | ".join) -> str:
    """A field's type, such as `list of objects`."""
    if "enum" in node:
        return choices(node["enum"])
    if "x-kubernetes-int-or-string" in node:
        return "quantity"
    if "items" in node:
        return f"list of {_plural(type_text(node['items'], choices))}"
    if "additionalProperties" in node:
        return f"map of {_plural(type_text(node['additionalProperties'], choices))}"
    return str(node["type"])


def bounds_text(node: Schema) -> str:
    """The least and the largest number that a field takes, as a sentence; empty where it has no bounds."""
    low, high = node.get("minimum"), node.get("maximum")
    if node.get("exclusiveMinimum"):
        return f"More than {_number(low)}, at most {_number(high)}."
    if low is not None and high is not None:
        return f"{_number(low)} to {_number(high)}."
    return f"At least {_number(low)}." if low is not None else ""


def _plural(name: str) -> str:
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def _number(value: Any) -> str:  # noqa: ANN401 - JSON's numbers
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def reference(schema: Schema) -> str:
    """The reference as Markdown, from the resource's structural schema."""
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    parts = spec["properties"]
    closed = {name: {key: part[key] for key in part if key != "properties"} for name, part in parts.items()}
    own = {**spec, "properties": closed}
    sections = [("spec", own), *((f"spec.{name}", parts[name]) for name in _SPEC_PARTS), ("status", status)]
    rules = [*_rules(schema, "")]
    text = [_INTRODUCTION]
    text += [f"\n## {path}\n\n{node['description']}\n\n{_table(path, node)}" for path, node in sections]
    text += ["\n## Rules\n\nWhat joins several fields. The path is the one that the refusal names.\n\n"]
    text += [_row("Path", "Rule", "CEL"), _row("---", "---", "---")]
    text += [_row(f"`{path or KIND}`", _escape(message), f"`{_escape(cel)}`") for path, message, cel in rules]
    return "".join(text)


def _table(path: str, node: Schema) -> str:
    rows = [_row("Field", "Type", "Default", "Description"), _row("---", "---", "---", "---")]
    for below, field, required in _fields_below(path, node):
        default = "**required**" if required else _default(field)
        rows.append(
            _row(
                f"`{below}`",
                type_text(field, _choices),
                default,
                f"{_escape(_description(below, field))} {bounds_text(field)}".rstrip(),
            )
        )
    return "".join(rows)


def _description(path: str, node: Schema) -> str:
    if "description" not in node:
        raise KeyError(f"{path} has no description: give its Field one")
    return str(node["description"])


def _fields_below(path: str, node: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below a node: its path, its schema, whether it is required."""
    for name, field in node.get("properties", {}).items():
        below = f"{path}.{name}"
        yield below, field, name in node.get("required", ())
        yield from _fields_below(f"{below}[]" if "items" in field else below, field.get("items", field))


def _rules(node: Schema, path: str) -> Iterator[tuple[str, str, str]]:
    """Every rule that joins fields or needs the stored resource; a quantity's own are its type."""
    for rule in node.get(VALIDATIONS, ()):
        if "x-kubernetes-int-or-string" not in node:
            yield (path + rule.get("fieldPath", "")).removeprefix("."), rule["message"], rule["rule"]
    for name, field in node.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if "items" in node:
        yield from _rules(node["items"], f"{path}[]")


def _choices(values: Sequence[str]) -> str:
    return " \\| ".join(f"`{value}`" for value in values)


def _default(node: Schema) -> str:
    value = node.get("default", {})
    if isinstance(value, dict):
        return ""  # its fields have their own lines
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


@dataclass(frozen=True, slots=True)
class FieldExplained:
    """What the schema says of a field."""

    path: str  # from the resource's root; empty for the resource itself
    type: str  # in words, or the values that it may have
    required: bool  # whether it must be there wherever what it is in is
    default: object  # its value where it is left out, as JSON has it; None for none
    bounds: str  # the numbers that it takes, as a sentence; empty without bounds
    description: str  # what it is for
    rules: tuple[str, ...]  # what joins the fields in it, or goes beyond its type
    fields: tuple["FieldExplained", ...]  # those in it, without theirs unless these were asked for


def explain_field(path: str, *, recursive: bool = False) -> FieldExplained:
    """What a field is.

    Args:
        path: As `kubectl explain` takes it or kvtier writes it, such as `spec.tiers.cpu`,
            `kvct.spec.tiers.cpu` or `spec.engine.env[].name`, or the end of one that no other has, such as
            `attach` or `cpu.capacity`; empty for the resource.
        recursive: Whether the fields in it come with those in them, and so on.

    Raises:
        InvalidInputError: There is no such field, and the nearest is named; or there are several.
    """
    node, required, below, location = openapi_schema(), True, "", tuple[str, ...]()
    for name in _complete(_names(path)):
        inner = node.get("items", node)
        location = (*location, name)
        if name not in inner.get("properties", {}):
            raise InvalidInputError(
                "", Problem(f"{below}.{name}".removeprefix("."), _unknown_text(node, location))
            )
        below = f"{below}{'[]' if 'items' in node else ''}.{name}".removeprefix(".")
        required = name in inner.get("required", ())
        node = inner["properties"][name]
    return _field(below, node, required=required, fields=_fields(below, node, recursive=recursive))


def _names(path: str) -> list[str]:
    names = [_ITEM.sub("", step) for step in path.split(".") if step]
    return names[1:] if names and names[0].lower() in _OF_THE_KIND else names


def _complete(names: list[str]) -> list[str]:
    """The names of a whole path, of one that may lack its beginning (InvalidInputError: there are several)."""
    if not names or names[0] in names_at(()):
        return names
    end = ".".join(names)
    paths = [_names(path) for path in paths_named(names[-1])]
    ending = [".".join(path) for path in paths if path[-len(names) :] == names]
    if len(ending) > 1:
        listed = ", ".join(ending[:_MOST_LISTED])
        more = f" and {len(ending) - _MOST_LISTED} more" if len(ending) > _MOST_LISTED else ""
        raise InvalidInputError("", Problem(end, f"several fields end so; write one of {listed}{more}"))
    return ending[0].split(".") if ending else names


def _unknown_text(parent: Schema, location: tuple[str, ...]) -> str:
    if parent.get("items", parent).get("properties"):
        return unknown_field(location)
    return f"unknown field: {location[-2]} of type {type_text(parent)} has no fields that kvtier knows"


def _fields(path: str, node: Schema, *, recursive: bool) -> tuple[FieldExplained, ...]:
    start = f"{path}[]" if "items" in node else path
    inner = node.get("items", node)
    fields = []
    for name, field in inner.get("properties", {}).items():
        below = f"{start}.{name}".removeprefix(".")
        parts = _fields(below, field, recursive=True) if recursive else ()
        fields.append(_field(below, field, required=name in inner.get("required", ()), fields=parts))
    return tuple(fields)


def _field(
    path: str, node: Schema, *, required: bool, fields: tuple[FieldExplained, ...] = ()
) -> FieldExplained:
    return FieldExplained(
        path=path,
        type=type_text(node),
        required=required,
        default=node.get("default"),
        bounds=bounds_text(node),
        description=node.get("description", _KUBERNETES_OWN),
        rules=tuple(rule["message"] for rule in node.get(VALIDATIONS, ())),
        fields=fields,
    )
