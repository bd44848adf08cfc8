"""Strict reading: one YAML mapping, no field unknown, no type guessed, the field's path in every error."""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import read_yaml
from kvtier_scorer.config.model import PickerConfigError

_T = TypeVar("_T")
# how msgspec ends its messages: " - at `$.plugins[0].name`", or " - at `key` in `$`"
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_PLAINER: Final = (
    (" | null", ""),
    ("Object contains unknown field", "unknown field"),
    ("Object missing required field", "lacks the field"),
    ("Expected", "must be"),
    ("`array`", "a list"),
    ("`object`", "a mapping"),
    ("`str`", "a string"),
    ("`int`", "a whole number"),
    ("`float`", "a number"),
    ("`bool`", "true or false"),
    ("`null`", "nothing"),
    ("`", "'"),
)


def load_mapping(text: str) -> dict[str, Any]:
    """The one mapping that `text` holds.

    Raises PickerConfigError: it is not YAML, not one document, not a mapping, or has a key twice.
    """
    try:
        documents = [*read_yaml(text)]
    except MalformedError as error:
        raise PickerConfigError(f"bad YAML: {error}") from None
    match documents:
        case [dict() as document]:
            return document
        case [_, _, *_]:
            raise PickerConfigError(f"{len(documents)} documents; keep one")
    raise PickerConfigError("the configuration must be a mapping with apiVersion, kind and plugins")


def convert(value: object, wanted: type[_T], path: str = "") -> _T:
    """`value` as `wanted`, a msgspec Struct that forbids unknown fields; `path` is its place in the document.

    Raises PickerConfigError: it does not fit; the message begins with the field's path.
    """
    try:
        return msgspec.convert(value, wanted, strict=True)
    except msgspec.ValidationError as error:
        message = str(error)
    place = _PLACE.search(message)
    inner = place["path"] if place else ""
    what = message[: place.start()] if place else message
    joint = "." if path and inner and not inner.startswith("[") else ""
    if what.startswith("Invalid enum value"):
        what = f"must be {' or '.join(_choices(wanted, inner))}, not{what.removeprefix('Invalid enum value')}"
    for theirs, plainer in _PLAINER:
        what = what.replace(theirs, plainer)
    raise field_error(f"{path}{joint}{inner}" or "the document", what)


def field_error(path: str, message: str) -> PickerConfigError:
    """The error about one field, in one line."""
    return PickerConfigError(" ".join(f"{path}: {message}".split()))


def _choices(wanted: Any, path: str) -> Iterable[str]:  # noqa: ANN401  # of a Struct's field, then an enumeration
    for name in path.split("."):
        wanted = next(field.type for field in msgspec.structs.fields(wanted) if field.encode_name == name)
    return tuple(wanted)
