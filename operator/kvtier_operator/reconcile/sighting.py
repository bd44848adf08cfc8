"""What was seen of a resource's running engines, and when a new look changes it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_operator.api.status import Source
from kvtier_operator.planning.corrected import differs
from kvtier_operator.planning.observed import EngineTokens

_NOT_THE_ENGINES: Final = ("replicas", "router", "observability")
"""Parts of the spec that leave the engines' pods as they are."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Sizes that an engine reported.

    Attributes:
        engine_hash: Hash of what its resource says of engines.
        tokens: What it said.
    """

    engine_hash: str
    tokens: EngineTokens

    @property
    def complete(self) -> bool:
        """Whether there is nothing more to learn; a disk tier is told of together with the CPU tier."""
        return self.tokens.gpu is not None and self.tokens.cpu is not None


def hash_engine(document: bytes) -> str:
    """Hash of what a resource says of its engines: the same while they need not restart.

    Args:
        document: The resource with its spec, as JSON.
    """
    spec = orjson.loads(document).get("spec") or {}
    kept = {name: value for name, value in spec.items() if name not in _NOT_THE_ENGINES}
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def merged(before: Sighting | None, engine: str, now: EngineTokens) -> Sighting:
    """The sighting after another look: engines of one spec differ a little from start to start."""
    if before is None or before.engine_hash != engine:
        return Sighting(engine, now)
    tokens = before.tokens
    return Sighting(
        engine,
        EngineTokens(
            gpu=_kept(tokens.gpu, now.gpu),
            cpu=_kept(tokens.cpu, now.cpu),
            disk=_kept(tokens.disk, now.disk),
        ),
    )


def from_status(status: Mapping[str, Any], generation: int, engine: str) -> Sighting | None:
    """What an operator before this one saw, if that was of the same spec."""
    if status.get("observedGeneration") != generation:
        return None
    tiers = status.get("tiers") or {}
    tokens = EngineTokens(**{name: _observed(tiers.get(name)) for name in ("gpu", "cpu", "disk")})
    return None if tokens == EngineTokens() else Sighting(engine, tokens)


def _kept(before: int | None, now: int | None) -> int | None:
    if before is None or (now is not None and differs(now, before)):
        return now
    return before


def _observed(tier: Mapping[str, Any] | None) -> int | None:
    return tier.get("tokens") if tier and tier.get("source") == Source.OBSERVED else None
