"""The API reference a person reads, made from the same schema as the CRD."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from kvtier_operator.api.base import VALIDATIONS
from kvtier_operator.api.resource import API_VERSION, KIND
from kvtier_operator.api.schema.crd import Schema
from kvtier_operator.api.schema.field_text import bounds_text, type_text

_INTRODUCTION: Final = f"""\
# {KIND}

`{API_VERSION}`, namespaced, short name `kvct`, category `kvtier`. A first resource needs `spec.model.name` and
`spec.tiers.cpu.capacity`; everything else has a default or is computed. Fields marked **required** are so wherever
their parent is given.

A *quantity* is Kubernetes' own: a number with a suffix `Ki`, `Mi`, `Gi`, `Ti` (powers of 1024) or `k`, `M`, `G`,
`T` (powers of 1000), or a plain number of bytes. Quote the value `"Off"`: YAML 1.1, which kubectl reads, takes the
unquoted word for false.

`kvtier plan`, `kvtier render` and `kvtier run` refuse what the API server refuses, except what needs the stored
resource (an immutable field). The rules at the end of this page are the same in both, word for word.
"""
_SPEC_PARTS: Final = ("model", "autoscaling", "engine", "tiers", "router", "observability")


def reference(schema: Schema) -> str:
    """The reference as Markdown, from the resource's structural schema."""
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    parts = spec["properties"]
    closed = {name: {key: each[key] for key in each if key != "properties"} for name, each in parts.items()}
    own = {**spec, "properties": closed}
    sections = [("spec", own), *((f"spec.{name}", parts[name]) for name in _SPEC_PARTS), ("status", status)]
    rules = [*_rules(schema, "")]
    text = [_INTRODUCTION]
    text += [f"\n## {path}\n\n{node['description']}\n\n{_table(path, node)}" for path, node in sections]
    text += ["\n## Rules\n\nWhat joins several fields. The path is the one that the refusal names.\n\n"]
    text += [_row("Path", "Rule", "CEL"), _row("---", "---", "---")]
    text += [
        _row(f"`{path or KIND}`", _escaped(message), f"`{_escaped(cel)}`") for path, message, cel in rules
    ]
    return "".join(text)


def _table(path: str, node: Schema) -> str:
    rows = [_row("Field", "Type", "Default", "Description"), _row("---", "---", "---", "---")]
    for below, each, required in _fields(path, node):
        default = "**required**" if required else _default(each)
        rows.append(
            _row(
                f"`{below}`",
                type_text(each, _choices),
                default,
                _escaped(each["description"]) + _bounds(each),
            )
        )
    return "".join(rows)


def _fields(path: str, node: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below a node: its path, its schema, whether it is required."""
    for name, each in node.get("properties", {}).items():
        below = f"{path}.{name}"
        yield below, each, name in node.get("required", ())
        yield from _fields(f"{below}[]" if "items" in each else below, each.get("items", each))


def _rules(node: Schema, path: str) -> Iterator[tuple[str, str, str]]:
    """Every rule that joins fields or needs the stored resource; a quantity's own are its type."""
    for rule in node.get(VALIDATIONS, ()):
        if "x-kubernetes-int-or-string" not in node:
            yield (path + rule.get("fieldPath", "")).removeprefix("."), rule["message"], rule["rule"]
    for name, each in node.get("properties", {}).items():
        yield from _rules(each, f"{path}.{name}")
    if "items" in node:
        yield from _rules(node["items"], f"{path}[]")


def _choices(values: Sequence[str]) -> str:
    return " \\| ".join(f"`{value}`" for value in values)


def _default(node: Schema) -> str:
    value = node.get("default", {})
    if isinstance(value, dict):
        return ""  # its fields have their own lines
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _bounds(node: Schema) -> str:
    return f" {bounds}" if (bounds := bounds_text(node)) else ""


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
