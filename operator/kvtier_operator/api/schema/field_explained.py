"""One field of the resource, found in the CRD's schema by its path."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from kvtier_operator.api.base import VALIDATIONS
from kvtier_operator.api.resource import KIND
from kvtier_operator.api.schema.complaints import unknown_field
from kvtier_operator.api.schema.crd import PLURAL, SHORT_NAME, Schema, openapi_schema
from kvtier_operator.api.schema.field_text import bounds_text, type_text
from kvtier_operator.errors import InvalidInputError, Problem

_OF_THE_KIND: Final = (KIND.lower(), PLURAL, SHORT_NAME)
_KUBERNETES_OWN: Final = f"Kubernetes' own: `kubectl explain {SHORT_NAME}.metadata`."
_ITEM: Final = re.compile(r"\[\d*\]$")


@dataclass(frozen=True, slots=True)
class FieldExplained:
    """What the schema says of a field.

    Attributes:
        path: From the resource's root; empty for the resource itself.
        type: In words, or the values that it may have.
        required: Whether it must be there wherever what it is in is.
        default: Its value where it is left out, as JSON has it; None for none.
        bounds: The numbers that it takes, as a sentence; empty without bounds.
        description: What it is for.
        rules: What joins the fields in it, or goes beyond its type.
        fields: Those in it, without theirs.
    """

    path: str
    type: str
    required: bool
    default: object
    bounds: str
    description: str
    rules: tuple[str, ...]
    fields: tuple["FieldExplained", ...]


def explained(path: str) -> FieldExplained:
    """What a field is.

    Args:
        path: As `kubectl explain` takes it or kvtier writes it, such as `spec.tiers.cpu`,
            `kvct.spec.tiers.cpu` or `spec.engine.env[].name`; empty for the resource.

    Raises:
        InvalidInputError: There is no such field; names the nearest.
    """
    node, required, below, location = _schema(), True, "", tuple[str, ...]()
    for name in _names(path):
        inner = node.get("items", node)
        location = (*location, name)
        if name not in inner.get("properties", {}):
            raise InvalidInputError(
                "", Problem(f"{below}.{name}".removeprefix("."), _unknown(node, location))
            )
        below = f"{below}{'[]' if 'items' in node else ''}.{name}".removeprefix(".")
        required = name in inner.get("required", ())
        node = inner["properties"][name]
    return _explained(below, node, required=required, fields=tuple(_fields(below, node)))


@cache
def _schema() -> Schema:
    return openapi_schema()


def _names(path: str) -> list[str]:
    names = [_ITEM.sub("", each) for each in path.split(".") if each]
    return names[1:] if names and names[0].lower() in _OF_THE_KIND else names


def _unknown(parent: Schema, location: tuple[str, ...]) -> str:
    if parent.get("items", parent).get("properties"):
        return unknown_field(location)
    return f"unknown field: {location[-2]} of type {type_text(parent)} has no fields that kvtier knows"


def _fields(path: str, node: Schema) -> Iterator[FieldExplained]:
    start = f"{path}[]" if "items" in node else path
    inner = node.get("items", node)
    for name, each in inner.get("properties", {}).items():
        below = f"{start}.{name}".removeprefix(".")
        yield _explained(below, each, required=name in inner.get("required", ()))


def _explained(
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
