"""`spec.backend` and `spec.tiers`: who moves blocks, and one kind of tier a file.

A tier beyond the device is a module of this package named after its member of `Tier`, in lower case, with `FIELDS`;
nothing else names it but who reads its fields.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from functools import cache
from importlib import import_module
from typing import Any, Final, Self, TypeVar, cast

from pydantic import Field, create_model
from pydantic.alias_generators import to_snake

from kvtier_common.tier import Tier
from kvtier_operator.api.base import ApiModel, Rule
from kvtier_operator.api.quantity import ByteQuantity


class Ability(Flag):
    """What not every backend can, where the texts and rules of the API depend on it."""

    NONE = 0
    SPREADS_DISK = auto()
    """Takes a disk tier of several volumes."""
    BOUNDS_WRITES = auto()
    """Keeps a bound on what is written to a disk tier."""
    TELLS_OF_TIERS = auto()
    """Its engines lock the CPU tier as the resource says, read a disk only where that pays, and tell of both."""
    KEEPS = auto()
    """Knows what is to stay: requests' hints, prefixes, tenants' shares; and is warm again after a restart."""
    LAYERS_LOADS = auto()
    """Has a step compute with the first layers of what it loads while the others are copied."""
    ATTACHES = auto()
    """Goes into engines that others start, as a plug-in of theirs."""


class Backend(StrEnum):
    """Who moves KV blocks between the device and the tiers.

    Its module is `kvtier_operator.planning.backends.<the member's name in lower case>`.
    """

    what: str  # whose it is or where it runs, for the field's description
    abilities: Ability  # what it can, of what not every backend can

    KVTIER = "KVTier", "kvtier's own connector", ~Ability.SPREADS_DISK
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


_ModelT = TypeVar("_ModelT", bound=ApiModel)


class TierSpec(ApiModel):
    """What is wanted of one tier; each has a capacity."""

    capacity: ByteQuantity = Field(description="Its size.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFields:
    """What a resource has of one tier."""

    title: str  # its name in descriptions
    status: str  # description of its size in the status
    # what the status has of it beside its size, where an engine says it: names of fields there
    tells: tuple[str, ...] = ()
    weight: int = (
        0  # of its prefix scorer, where the resource gives none; of a tier that a pod has for itself
    )
    # type and description of its part of `spec.tiers`; None of the device's own cache
    spec: tuple[Any, Any] | None = None
    rules: tuple[Rule, ...] = ()  # what joins its fields with others of the spec


_DEVICE: Final = TierFields(
    title="GPU", status="The device's own KV cache.", tells=("block_tokens",), weight=1
)


@cache
def fields_of(tier: Tier) -> TierFields:
    """What a resource has of a tier."""
    if tier is Tier.GPU:
        return _DEVICE
    return cast("TierFields", import_module(f"{__name__}.{tier.label}").FIELDS)


def with_tiers(
    make: Callable[[TierFields], tuple[Any, Any] | None], suffix: str = "", of: Iterable[Tier] = Tier
) -> Callable[[type[_ModelT]], type[_ModelT]]:
    """Gives the model that is written below a field for each tier, after its own.

    Args:
        make: Type and default of the field; None of a tier without it.
        suffix: Of its name, after the tier's.
        of: Which tiers.
    """
    fields: dict[str, Any] = {
        f"{tier.label}{suffix}": field for tier in of if (field := make(fields_of(tier)))
    }

    def extend(model: type[_ModelT]) -> type[_ModelT]:
        return create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
        )

    return extend


def ability_rule(ability: Ability, field: str, does: str, unused: str = "") -> Rule:
    """The rule that a field of a tier is left out with a backend that cannot what it asks for.

    Args:
        ability: What a backend needs for it.
        field: Its path in the tiers', such as `disk.extraVolumes`.
        does: What those backends do, after their names.
        unused: CEL that holds where the field is there and asks for nothing.
    """
    able, (label, name) = backends_with(ability), field.split(".")
    cel = (f"!has(self.tiers.{label})", f"!has(self.tiers.{field})", *filter(None, [unused]))
    return Rule(
        " || ".join((*cel, *(f"self.backend == '{backend}'" for backend in able))),
        f"only backend {one_of(able)} {does}; remove {name}",
        f".tiers.{field}",
        lambda spec: (
            # a list that names nothing asks for nothing; a switch that is off was meant
            getattr(getattr(spec.tiers, label), to_snake(name), None) in (None, [])
            or ability in spec.backend.abilities
        ),
    )
