"""The backends, and what the API itself has to know of them, which a test holds to what they do."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self


class Backend(StrEnum):
    """Who moves KV blocks between the device and the tiers.

    Its module is `kvtier_operator.planning.backends.<the member's name in lower case>`.

    Attributes:
        what: Whose it is or where it runs, for the field's description.
    """

    what: str

    KVTIER = "KVTier", "kvtier's own connector"
    NATIVE = "Native", "vLLM's"
    LMCACHE = "LMCache", "in the engine"
    LMCACHE_MP = "LMCacheMP", "a server beside it"

    def __new__(cls, value: str, what: str) -> Self:
        """The member of a value, with what it is."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.what = what
        return member


DEFAULT_BACKEND: Final = Backend.KVTIER
SPREADING_DISK: Final = (Backend.LMCACHE,)
"""Those that take a disk tier of several volumes."""
BOUNDING_WRITES: Final = (Backend.KVTIER,)
"""Those that keep a bound on what is written to a disk tier."""
TELLING_OF_TIERS: Final = (Backend.KVTIER,)
"""Those whose engines say how much of a tier is locked, how full it is, and whether reading it pays."""


def one_of(names: Iterable[str]) -> str:
    """Names in a sentence: `KVTier, Native or LMCache`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def cel_one_of(backends: Iterable[Backend]) -> str:
    """CEL that holds in a spec whose backend is one of these."""
    return " || ".join(f"self.backend == '{each}'" for each in backends)
