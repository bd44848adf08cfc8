"""Words that a resource of an earlier version may have; each is read as the one of now, for a version more."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import BeforeValidator
from pydantic.config import JsonDict

FORMER: Final = "x-kvtier-former"
"""Where a field's schema keeps them: the CRD takes them beside those of now, and no page names them."""


@dataclass(frozen=True, slots=True)
class FormerWord:
    """One of them."""

    field: str  # name of the fields that had it
    was: str | bool
    now: str


NEVER: Final = "Never"
OFF: Final = (FormerWord("policy", "Off", NEVER), FormerWord("policy", was=False, now=NEVER))
"""YAML 1.1 reads an unquoted Off as false before anyone can look at it."""

GPU: Final = "gpu"
CUDA: Final = FormerWord("device", "cuda", GPU)
"""It meant GPUs of AMD's as well."""
ALL: Final = (*OFF, CUDA)


def read_as_now(*words: FormerWord) -> BeforeValidator:
    """Reads them as those of now."""

    def read(value: object) -> object:
        return next((word.now for word in words if _is(value, word)), value)

    return BeforeValidator(read)


def schema_of(*words: FormerWord) -> JsonDict:
    """What the field's schema keeps of them: the CRD's type has no room for other than text."""
    return {FORMER: [word.was for word in words if isinstance(word.was, str)]}


def former_words(value: object, *words: FormerWord, path: str = "") -> Iterator[tuple[str, FormerWord]]:
    """Each that a document has, with its field's path."""
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        below = f"{path}.{key}".removeprefix(".")
        yield from ((below, word) for word in words if key == word.field and _is(item, word))
        yield from former_words(item, *words, path=below)


def _is(value: object, word: FormerWord) -> bool:
    return type(value) is type(word.was) and value == word.was
