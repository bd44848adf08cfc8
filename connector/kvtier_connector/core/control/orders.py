"""What an engine can be told: read strictly, since a typing error must not clear too much."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.hints import MOST_TENANT_CHARACTERS
from kvtier_common.string_enum import StrEnum
from kvtier_common.tier import Tier

MOST_PROMPTS: Final = 64
"""Of one order."""
MOST_EPOCH_CHARACTERS: Final = 64
_TIERS: Final = {tier.label: tier for tier in Tier}


class Verb(StrEnum):
    """What is to be done."""

    CLEAR = "clear"
    PREFETCH = "prefetch"
    STATUS = "status"
    TOP = "top"  # the same, as the command is called


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A prompt as the engine knows it."""

    tokens: tuple[int, ...]
    cache_salt: str = ""


@dataclass(frozen=True, slots=True)
class ClearOrder:
    """Have blocks not be served any more: all, a tenant's, or those of prompts."""

    tiers: frozenset[Tier]
    share: str = ""  # a tenant's name; empty for everybody's
    prompts: tuple[PromptTokens, ...] = ()  # none for all blocks
    epoch: str = ""  # under which the engines of a shared store go on; one for all of them


@dataclass(frozen=True, slots=True)
class PrefetchOrder:
    """Have a prompt's blocks come to memory."""

    prompt: PromptTokens


@dataclass(frozen=True, slots=True)
class StatusOrder:
    """Tell what the tiers hold."""


Order = ClearOrder | PrefetchOrder | StatusOrder


def read_order(value: Mapping[str, Any]) -> Order:
    """Read an order. Raises MalformedError: names the field that is unknown or bad, and what it must be."""
    fields = dict(value)
    verb = fields.pop("verb", None)
    if verb not in tuple(Verb):
        raise MalformedError(f"verb: must be one of {', '.join(Verb)}")
    order = _READERS[Verb(verb)](fields)
    if fields:
        raise MalformedError(f"{verb} knows no field {min(map(str, fields))!r}")
    return order


def _clear(fields: dict[str, Any]) -> ClearOrder:
    share, prompts = _share(fields), _prompts(fields)
    if share and prompts:
        raise MalformedError(
            "share: must not be given with tokens: a prompt's blocks are one tenant's anyway"
        )
    return ClearOrder(_tiers(fields), share, prompts, _text(fields, "epoch", MOST_EPOCH_CHARACTERS))


def _prefetch(fields: dict[str, Any]) -> PrefetchOrder:
    tokens, salt = fields.pop("tokens", None), _text(fields, "cache_salt")
    return PrefetchOrder(PromptTokens(_tokens(tokens), salt))


def _status(_fields: dict[str, Any]) -> StatusOrder:
    return StatusOrder()


_READERS: Final[Mapping[Verb, Callable[[dict[str, Any]], Order]]] = {
    Verb.CLEAR: _clear,
    Verb.PREFETCH: _prefetch,
    Verb.STATUS: _status,
    Verb.TOP: _status,
}


def _tiers(fields: dict[str, Any]) -> frozenset[Tier]:
    name = fields.pop("tier", None)
    if name is None:
        return frozenset(Tier)
    if not isinstance(name, str) or name not in _TIERS:
        raise MalformedError(f"tier: must be one of {', '.join(_TIERS)}, or null for all")
    return frozenset({_TIERS[name]})


def _prompts(fields: dict[str, Any]) -> tuple[PromptTokens, ...]:
    prompts, salt = fields.pop("tokens", None), _text(fields, "cache_salt")
    if prompts is None:
        if salt:
            raise MalformedError("cache_salt: must come with tokens")
        return ()
    if not isinstance(prompts, list) or not 0 < len(prompts) <= MOST_PROMPTS:
        raise MalformedError(
            f"tokens: must be 1 to {MOST_PROMPTS} lists of token ids, or null for all blocks"
        )
    return tuple(PromptTokens(_tokens(tokens), salt) for tokens in prompts)


def _share(fields: dict[str, Any]) -> str:
    if fields.get("share") == "":  # an unset variable of a script, which does not mean everybody's
        raise MalformedError("share: is empty; name a tenant, or give null for everybody's blocks")
    return _text(fields, "share", MOST_TENANT_CHARACTERS)


def _tokens(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(map(_is_token, value)):
        raise MalformedError("tokens: must be a list of token ids, whole numbers from 0")
    return tuple(value)


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(fields: dict[str, Any], name: str, most_characters: int = 1024) -> str:
    value = fields.pop(name, None)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most_characters:
        raise MalformedError(f"{name}: must be text of at most {most_characters} characters, or null")
    return value
