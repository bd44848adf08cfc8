"""A resource for somebody who has none yet: from a model's name to a document, and to commented YAML."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.api.resource import API_VERSION, KIND, MAX_NAME_LENGTH
from kvtier_operator.api.schema.complaints import Location, field_at

_WIDTH: Final = 100
_STEP: Final = "  "
_NO_NAME: Final = "model"
_TOP: Final = (
    "`kvtier plan -f FILE` says what this comes to, `kvtier explain FIELD` what a field means; "
    "`kubectl apply -f FILE` has the operator make it. A # with no space behind it stands before a field to consider."
)
_SUGGESTED: Final[tuple[tuple[Location, object], ...]] = (
    (("spec", "replicas"), 2),
    (("spec", "engine", "gpu"), "h100"),
    (("spec", "engine", "tensorParallelSize"), 2),
    (("spec", "tiers", "disk"), {"capacity": "1Ti", "volume": {"emptyDir": {}}}),
)
"""What many resources have, in the place where it belongs."""
_NOT_TEXT: Final = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Words that YAML reads as something other than text."""


def resource_name(model: str) -> str:
    """A name for a resource after its model, such as `qwen3-32b` for `Qwen/Qwen3-32B`."""
    words = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].lower())
    return words.lstrip("-0123456789")[:MAX_NAME_LENGTH].strip("-") or _NO_NAME


def first_document(model: str) -> dict[str, Any]:
    """A document with the model and a place for what goes with it; without tiers it is no resource yet."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": resource_name(model)},
        "spec": {
            "model": {"name": model},
            "engine": {},
            "tiers": {},
            "router": {"gateway": {"provider": "standalone"}},
        },
    }


def commented_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, each field of the spec with what it means, and suggestions that are comments."""
    lines = [*(f"# {line}" for line in textwrap.wrap(_TOP, _WIDTH - 2)), *_lines(document, ())]
    return "\n".join(lines) + "\n"


def _lines(mapping: Mapping[str, Any], location: Location) -> Iterator[str]:
    indent = _STEP * len(location)
    for name, value in mapping.items():
        place = (*location, name)
        if isinstance(value, Mapping) and (value or _suggestions_at(place)):
            # one with nothing but comments in it is null, which is as if it were not there
            yield f"{indent}{name}:"
            yield from _lines(value, place)
            yield from _suggestions(place, value)
        elif value is not None:
            yield from _meaning(place, indent)
            yield f"{indent}{name}: {_flow(value)}"


def _suggestions_at(place: Location) -> list[tuple[Location, object]]:
    return [(path, value) for path, value in _SUGGESTED if path[:-1] == place]


def _suggestions(place: Location, value: Mapping[str, Any]) -> Iterator[str]:
    indent = _STEP * len(place)
    for path, suggestion in _suggestions_at(place):
        if path[-1] not in value:
            yield from _meaning(path, indent)
            yield f"{indent}#{path[-1]}: {_flow(suggestion)}"


def _meaning(place: Location, indent: str) -> Iterator[str]:
    """The first sentence of the field's description."""
    field = field_at(place) if place[0] == "spec" else None
    if field is None or not field.description:
        return
    sentence = re.split(r"(?<=[.;]) ", field.description, maxsplit=1)[0].rstrip(".;")
    yield from (f"{indent}# {line}" for line in textwrap.wrap(sentence, _WIDTH - len(indent) - 2))


def _flow(value: object) -> str:
    """In one line that YAML and JSON readers take alike."""
    match value:
        case str() if re.fullmatch(r"[A-Za-z][A-Za-z0-9./_-]*", value) and value.lower() not in _NOT_TEXT:
            return value
        case str() if re.fullmatch(r"[0-9]+(\.[0-9]+)?[KMGTPE]i", value):
            return value
        case dict():
            return f"{{{', '.join(f'{_flow(key)}: {_flow(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
    return json.dumps(value, ensure_ascii=False)
