"""Dataclasses of which thousands are made a second, and that only the type checker keeps frozen."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, eq_default=False)
def statically_frozen(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots that is equal to itself only; whoever writes to it fails mypy.

    Python makes a frozen dataclass through a call for each field: 1.3 us for eight, where 0.3 do otherwise.
    """
    return dataclass(slots=True, eq=False)(cls)
