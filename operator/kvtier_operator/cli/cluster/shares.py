"""Who holds what of the tiers: tenants, what requests retain, and prefixes, as engines count them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.metrics import hints, prefixes
from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.tier import Tier

_RETAINED: Final = hints.RETAINED_BYTES.encode()
_HELD: Final = hints.TENANT_HELD_BYTES.encode()
_ASKED: Final = f"{hints.TENANT_ASKED_TOKENS}_total".encode()
_HIT: Final = f"{hints.TENANT_HIT_TOKENS}_total".encode()
_SAVED_S: Final = f"{hints.TENANT_SAVED_SECONDS}_total".encode()
_TOKENS: Final = prefixes.TOKENS.encode()
_CACHED: Final = prefixes.CACHED_TOKENS.encode()
SHARE_METRICS: Final = (_RETAINED, _HELD, _ASKED, _HIT, _SAVED_S, _TOKENS, _CACHED)
"""Names of the samples of which something is read."""
_TIERS: Final = {tier.label: tier for tier in Tier}
_PREFIX: Final = "prefix"


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One tenant, of all engines that answered, since each started."""

    name: str  # as listed; `other` for everybody else
    held_bytes: Mapping[Tier, int]  # what it holds of each tier now
    asked_tokens: int  # tokens of its requests that the device did not have
    hit_tokens: int  # of those, what its requests loaded and did not compute
    saved_s: float  # seconds that computing these tokens would have taken

    @property
    def hit_rate(self) -> float | None:
        """What was loaded of what was asked for, 0 to 1; None before the first."""
        return self.hit_tokens / self.asked_tokens if self.asked_tokens else None


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """One of the resource's prefixes."""

    name: str
    tokens: int | None  # as engines count them; None before one has computed it
    # least part that an engine found in a cache when it asked last, 0 to 1; None where none tells
    cached_share: float | None


@dataclass(frozen=True, slots=True)
class Shares:
    """Who holds what."""

    tenants: tuple[TenantRow, ...]  # those that hold most of memory first
    retained_bytes: Mapping[Tier, int]  # what requests and prefixes retain of each tier
    prefixes: tuple[PrefixRow, ...]  # in the resource's order


def shares_of(engines: Sequence[Families], told: Sequence[Mapping[str, Any]]) -> Shares:
    """Add up what engines say.

    Args:
        engines: What those said that answered.
        told: `status.prefixes`: the names, and what an engine said before.
    """
    held = _sums(engines, _HELD, hints.TENANT, hints.TIER)
    asked, hit, saved_s = (_sums(engines, name, hints.TENANT) for name in (_ASKED, _HIT, _SAVED_S))
    names = {labels[0] for labels in (*held, *asked)}
    rows = [
        TenantRow(
            name=name,
            held_bytes={_TIERS[tier]: int(size) for (whose, tier), size in held.items() if whose == name},
            asked_tokens=int(asked.get((name,), 0)),
            hit_tokens=int(hit.get((name,), 0)),
            saved_s=saved_s.get((name,), 0.0),
        )
        for name in names
    ]
    retained = _sums(engines, _RETAINED, hints.TIER)
    return Shares(
        tenants=tuple(sorted(rows, key=lambda row: (-row.held_bytes.get(Tier.CPU, 0), row.name))),
        retained_bytes={_TIERS[tier]: int(size) for (tier,), size in retained.items()},
        prefixes=tuple(_prefix(engines, one) for one in told),
    )


def _sums(engines: Sequence[Families], name: bytes, *wanted: str) -> dict[tuple[str, ...], float]:
    """A metric's values added up by some of its labels; what names a tier that nobody knows is left out."""
    sums: dict[tuple[str, ...], float] = {}
    for engine in engines:
        for text, value in engine.of(name):
            labels = read_labels(text)
            if hints.TIER in wanted and labels.get(hints.TIER) not in _TIERS:
                continue
            key = tuple(labels.get(label, "") for label in wanted)
            sums[key] = sums.get(key, 0.0) + value
    return sums


def _prefix(engines: Sequence[Families], told: Mapping[str, Any]) -> PrefixRow:
    name = str(told.get("name", ""))
    tokens = [value for engine in engines for value in _values(engine, _TOKENS, name)]
    cached = [value for engine in engines for value in _values(engine, _CACHED, name)]
    most = int(max(tokens)) if tokens else told.get("tokens")
    return PrefixRow(name, most, min(cached) / most if cached and most else None)


def _values(engine: Families, metric: bytes, prefix: str) -> list[float]:
    return [value for text, value in engine.of(metric) if read_labels(text).get(_PREFIX) == prefix]


def shares_fields(shares: Shares) -> dict[str, Any]:
    """What `-o json` prints of them."""
    return {
        "retainedBytes": {tier.label: size for tier, size in shares.retained_bytes.items()},
        "tenants": [
            {
                "name": tenant.name,
                "heldBytes": {tier.label: size for tier, size in tenant.held_bytes.items()},
                "askedTokens": tenant.asked_tokens,
                "hitTokens": tenant.hit_tokens,
                "hitRate": tenant.hit_rate,
                "savedSeconds": tenant.saved_s,
            }
            for tenant in shares.tenants
        ],
        "prefixes": [
            {"name": prefix.name, "tokens": prefix.tokens, "cachedShare": prefix.cached_share}
            for prefix in shares.prefixes
        ],
    }
