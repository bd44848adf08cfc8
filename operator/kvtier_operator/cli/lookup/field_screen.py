"""A field of the resource for a person to read."""

import json
from collections.abc import Iterator
from typing import Final

from kvtier_operator.api.resource import API_VERSION, KIND
from kvtier_operator.api.schema.reference import FieldExplained
from kvtier_operator.cli.text.terminal import folded

_INDENT: Final = "  "


def field_screen(field: FieldExplained, columns: int) -> str:
    """A field with those in it, as lines of at most so many columns, with a final newline."""
    return "\n".join(_lines(field, columns)) + "\n"


def _lines(field: FieldExplained, columns: int) -> Iterator[str]:
    yield from folded(f"{field.path or KIND} ({API_VERSION})", columns)
    yield from folded(_kind(field), columns, _INDENT)
    yield from folded(_description(field), columns, _INDENT)
    if field.rules:
        yield ""
        yield "rules"
        for rule in field.rules:
            yield from folded(rule, columns, _INDENT)
    if field.fields:
        yield ""
        yield "fields"
        for each in field.fields:
            name = each.path.rpartition(".")[2]
            yield from folded(f"{name}  {_kind(each)}", columns, _INDENT)
            yield from folded(_description(each), columns, 3 * _INDENT)


def _kind(field: FieldExplained) -> str:
    """Type, and whether it may be left out."""
    if field.required:
        return f"{field.type}, required"
    if field.default is None:
        return field.type
    default = field.default if isinstance(field.default, str) else json.dumps(field.default)
    return f"{field.type}, default {default}"


def _description(field: FieldExplained) -> str:
    return f"{field.description} {field.bounds}".strip()
