"""What a field takes, in words: for the reference and for `kvtier explain`."""

from collections.abc import Callable, Sequence
from typing import Any

from kvtier_operator.api.schema.crd import Schema


def type_text(node: Schema, choices: Callable[[Sequence[str]], str] = " | ".join) -> str:
    """A field's type, such as `list of objects`.

    Args:
        node: Its schema.
        choices: Writes the values of a field that takes a few words only.
    """
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
