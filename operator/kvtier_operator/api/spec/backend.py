"""`spec.backend`: who moves blocks, and what the API itself has to know of each."""

from collections.abc import Iterable
from enum import Flag, StrEnum, auto
from typing import Final, Self


class Ability(Flag):
    """What not every backend can, where the texts and rules of the API depend on it."""

    NONE = 0
    SPREADS_DISK = auto()
    """Takes a disk tier of several volumes."""
    BOUNDS_WRITES = auto()
    """Keeps a bound on what is written to a disk tier."""
    TELLS_OF_TIERS = auto()
    """Its engines lock the CPU tier as the resource says, read a disk only where that pays, and tell of both."""


class Backend(StrEnum):
    """Who moves KV blocks between the device and the tiers.

    Its module is `kvtier_operator.planning.backends.<the member's name in lower case>`.

    Attributes:
        what: Whose it is or where it runs, for the field's description.
        abilities: What it can, of what not every backend can.
    """

    what: str
    abilities: Ability

    KVTIER = "KVTier", "kvtier's own connector", Ability.BOUNDS_WRITES | Ability.TELLS_OF_TIERS
    NATIVE = "Native", "vLLM's"
    LMCACHE = "LMCache", "in the engine", Ability.SPREADS_DISK
    LMCACHE_MP = "LMCacheMP", "a server beside it"

    def __new__(cls, value: str, what: str, abilities: Ability = Ability.NONE) -> Self:
        """The member of a value, with what it is."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.what = what
        member.abilities = abilities
        return member


DEFAULT_BACKEND: Final = Backend.KVTIER


def one_of(names: Iterable[str]) -> str:
    """Names in a sentence: `KVTier, Native or LMCache`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def backends_with(ability: Ability) -> tuple[Backend, ...]:
    """Those that can something."""
    return tuple(backend for backend in Backend if ability in backend.abilities)
