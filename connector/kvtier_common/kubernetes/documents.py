"""What an API server sends, as plain values: looked at before it is believed. No I/O."""

from typing import Any, TypeAlias

import orjson

from kvtier_common.errors import UnreachableError

Document: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, str]
"""Namespace (empty for what belongs to none) and name."""


def parsed(text: bytes) -> Document:
    """A document, or a line of a watch.

    Raises:
        UnreachableError: It is none.
    """
    try:
        return as_object(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise UnreachableError(f"the API server sends something that is not JSON: {text[:60]!r}") from error


def as_object(value: object) -> Document:
    """The value, which has to be an object.

    Raises:
        UnreachableError: It is none.
    """
    if not isinstance(value, dict):
        raise UnreachableError(f"the API server sends something that is not an object: {value!r:.60}")
    return value


def place_of(document: Document) -> Place:
    """An object's namespace and name.

    Raises:
        UnreachableError: It has no name.
    """
    metadata = as_object(document.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace", "")
    if not isinstance(name, str) or not name or not isinstance(namespace, str):
        raise UnreachableError("the API server sends an object without a name")
    return namespace, name


def items_of(page: Document) -> list[object]:
    """The objects of a page.

    Raises:
        UnreachableError: They are no list.
    """
    items = page.get("items") or []
    if not isinstance(items, list):
        raise UnreachableError(f"the API server sends a list whose items are none: {items!r:.60}")
    return items


def version_of(document: Document) -> str:
    """The resource version of an object or of a list; empty without one."""
    return str(as_object(document.get("metadata")).get("resourceVersion") or "")


def table_names(table: Document) -> list[str]:
    """The first column of a Table is the name."""
    rows = table.get("rows") or []
    cells = [as_object(row).get("cells") for row in rows] if isinstance(rows, list) else []
    return [str(each[0]) for each in cells if isinstance(each, list) and each]
