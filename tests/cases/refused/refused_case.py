"""A resource that is wrong without breaking a CEL rule."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """A wrong resource: the changes that make it, and what a local command says, a line for each problem."""

    changes: Mapping[str, object]
    said: str
