"""What an API server can answer: documents, looked at before they are believed, and errors."""

import re
from typing import Any, Final, TypeAlias

import orjson

from kvtier_common.errors import MomentaryError, PermanentError, RetryableError, UnreachableError

_QUOTED: Final = re.compile(r'((?:Invalid|Duplicate) value: )"(?:[^"\\]|\\.)*(?:"|$)')
_DUMPED: Final = re.compile(r"((?:Invalid|Duplicate) value: )[^\s\"{]*\{.*\}")
"""A whole object as Go writes it (k8s.io/apimachinery, field.Error)."""
_LEFT_OUT: Final = r"\1(left out)"
_MOST_READ: Final = 16 << 10
_MOST: Final = 2000  # characters; webhooks say what they like
Document: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, str]  # namespace (empty for what belongs to none) and name


def without_values(message: str) -> str:
    """What is wrong and where, which the path before the value says, and no more than a person reads."""
    text = _DUMPED.sub(_LEFT_OUT, _QUOTED.sub(_LEFT_OUT, message[:_MOST_READ]))
    return text if len(text) <= _MOST else f"{text[:_MOST]} ..."


class ServerError(MomentaryError):
    """The server failed (5xx), or asked to come back later (429)."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ConflictError(MomentaryError):
    """The object changed in between (409)."""


class ExpiredError(MomentaryError):
    """The resource version is too old to go on from (410): list again."""


class ForbiddenError(RetryableError):
    """Not allowed (401, 403): quota, admission or rights, which an administrator can change."""


class NotFoundError(PermanentError):
    """The object, or its whole kind, is not there (404)."""


class NamespaceTerminatingError(PermanentError):
    """The namespace is being deleted: nothing new can be made in it, ever."""


class InvalidObjectError(PermanentError):
    """The server refuses the object as it is (400, 422)."""


def parse_document(text: bytes) -> Document:
    """A document, or a line of a watch. Raises UnreachableError: it is none."""
    try:
        return as_object(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise UnreachableError(f"the API server sends something that is not JSON: {text[:60]!r}") from error


def as_object(value: object) -> Document:
    """The value, which has to be an object. Raises UnreachableError: it is none."""
    if not isinstance(value, dict):
        raise UnreachableError(f"the API server sends something that is not an object: {value!r:.60}")
    return value


def place_of(document: Document) -> Place:
    """An object's namespace and name. Raises UnreachableError: it has no name."""
    metadata = as_object(document.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace", "")
    if not isinstance(name, str) or not name or not isinstance(namespace, str):
        raise UnreachableError("the API server sends an object without a name")
    return namespace, name


def items_of(page: Document) -> list[object]:
    """The objects of a page. Raises UnreachableError: they are no list."""
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
    return [str(cell[0]) for cell in cells if isinstance(cell, list) and cell]
