"""What running engines reported, when a new report changes it, and the configuration of a model."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Source
from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, EngineTokens
from kvtier_operator.planning.tiers.observed_tiers import differs

_NOT_THE_ENGINES: Final = ("replicas", "autoscaling", "router", "observability")
"""Parts of the spec that engines are not started with."""


@dataclass(frozen=True, slots=True)
class EngineObservation:
    """The report of one engine."""

    engine_hash: str  # hash of the part of the spec that it was started with
    tokens: EngineTokens  # sizes of its tiers
    findings: EngineFindings = NOTHING_FOUND  # what else it reported of them

    @property
    def complete(self) -> bool:
        """Whether all sizes are known; a disk tier's is reported together with the CPU tier's."""
        return {Tier.GPU, Tier.CPU} <= self.tokens.by_tier.keys()

    @property
    def may_change(self) -> bool:
        """Whether a later report may differ: engines measure whether a disk pays for as long as they run."""
        return self.findings.disk_pays is not None


def hash_engine(document: bytes) -> str:
    """Hash of the part of a spec that engines are started with: equal while they need not restart."""
    spec = orjson.loads(document).get("spec") or {}
    kept = {name: value for name, value in spec.items() if name not in _NOT_THE_ENGINES}
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def merge_observations(before: EngineObservation | None, now: EngineObservation) -> EngineObservation:
    """The observation after another report: engines of one spec differ a little from start to start."""
    if before is None or before.engine_hash != now.engine_hash:
        return now
    tokens, findings = before.tokens, before.findings
    sizes = {tier: _steady(tokens.by_tier.get(tier), now.tokens.by_tier.get(tier)) for tier in Tier}
    return EngineObservation(
        now.engine_hash,
        EngineTokens(
            {tier: size for tier, size in sizes.items() if size is not None},
            block=tokens.block if now.tokens.block is None else now.tokens.block,
            gpu_blocks=_steady(tokens.gpu_blocks, now.tokens.gpu_blocks),
        ),
        EngineFindings(
            pinned_bytes=_steady(findings.pinned_bytes, now.findings.pinned_bytes),
            disk_pays=findings.disk_pays if now.findings.disk_pays is None else now.findings.disk_pays,
        ),
    )


def observation_from_status(
    status: Mapping[str, Any], generation: int, engine: str
) -> EngineObservation | None:
    """What an earlier process of the operator observed, if the spec is still the same."""
    if status.get("observedGeneration") != generation:
        return None
    tiers = status.get("tiers") or {}
    reported = {tier: tiers.get(tier.label) or {} for tier in Tier}
    observed = {tier: _observed_tokens(each) for tier, each in reported.items()}
    tokens = EngineTokens(
        {tier: size for tier, size in observed.items() if size is not None},
        block=reported[Tier.GPU].get("blockTokens"),
    )
    findings = EngineFindings(
        pinned_bytes=reported[Tier.CPU].get("pinnedBytes"), disk_pays=reported[Tier.DISK].get("pays")
    )
    return None if tokens == EngineTokens() else EngineObservation(engine, tokens, findings)


def _steady(before: int | None, now: int | None) -> int | None:
    if before is None or (now is not None and differs(now, before)):
        return now
    return before


def _observed_tokens(tier: Mapping[str, Any]) -> int | None:
    return tier.get("tokens") if tier.get("source") == Source.OBSERVED else None


@dataclass(frozen=True, slots=True)
class FoundModelConfig:
    """The model's configuration for one generation of a resource, or why there is none."""

    generation: int
    config: str = ""  # the config.json, compact; empty where it is not needed or was not found
    source: str = ""  # where it came from, for people
    missing: str = ""  # why it was not found
    retry: bool = False  # whether it may be found later without a change of the resource
    from_config_map: bool = False  # whether it comes from a ConfigMap, which may be corrected

    @property
    def parsed(self) -> Mapping[str, Any] | None:
        """The configuration; None without one."""
        if not self.config:
            return None
        config: Mapping[str, Any] = json.loads(self.config)
        return config
