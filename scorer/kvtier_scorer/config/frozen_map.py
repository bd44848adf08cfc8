"""A mapping that can be hashed: part of what a configuration is looked up by."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(Mapping[K, V]):
    """A mapping that does not change, in the order in which it was given.

    Args:
        values: What is in it; the values can be hashed as well as the keys.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[K, V]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __or__(self, others: Mapping[K, V]) -> "FrozenMap[K, V]":
        return FrozenMap({**self._values, **others})

    def __repr__(self) -> str:
        return f"FrozenMap({self._values!r})"
