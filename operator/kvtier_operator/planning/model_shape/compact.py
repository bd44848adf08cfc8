"""A config.json in as little as decides a model's shape, to be kept for each of thousands of resources."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.errors import InvalidInputError, Problem

MOST_BYTES: Final = 16 << 10
_LONG_BYTES: Final = 6 << 10
"""Of one list or object: names of modules that are not quantised and labels of classes are longer, a list of
one word a layer is not."""


def compact(config: Mapping[str, Any], source: str) -> str:
    """The file as JSON without its long parts, which nothing about the cache depends on.

    Raises:
        InvalidInputError: It is long all the same.
    """
    text = json.dumps(_without_long(config), separators=(",", ":"))
    if len(text) > MOST_BYTES:
        problem = (
            f"has {len(text) >> 10} KiB beside its lists, more than the {MOST_BYTES >> 10} KiB kept of one"
        )
        raise InvalidInputError(
            source, Problem("spec.model.configRef", f"{problem}: leave out what does not describe layers")
        )
    return text


def _without_long(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        inner = {name: _without_long(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if not _is_long(each)}
    return value


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(json.dumps(value, separators=(",", ":"))) > _LONG_BYTES
