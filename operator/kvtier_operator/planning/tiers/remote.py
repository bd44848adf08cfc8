"""The remote tier: one store of all engines, read only where that pays, done without where it fails."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kvtier_common.metrics import remote_tier
from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.promql import Alert, Series
from kvtier_operator.planning.base.remote_store import costs_of
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks, TierPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.tiers import Panel, TierTraits
from kvtier_operator.planning.units import count, size


def _serve(spec: Spec, geometry: Geometry, backend: BackendPlan) -> BackendPlan:
    """The store's bytes belong to no rank; it holds as many chunks as go into its capacity.

    Of kvtier's own values, where the backend does not say how many of its own.
    """
    remote = spec.tiers.remote
    if remote is None:
        return backend
    percent = costs_of(remote).stored_percent
    chunk_bytes = backend.bytes_per_chunk or geometry.kv_bytes_per_token * backend.tokens_per_chunk
    held = backend.chunks.get(Tier.REMOTE) or TierChunks(
        chunks=remote.capacity.bytes * 100 // (chunk_bytes * percent),
        how=f"{size(remote.capacity.bytes)} / ({count(chunk_bytes)} B x {percent / 100:g})",
        memory_bytes=0,
        read_s=0,
    )
    return replace(
        backend,
        bytes_per_rank={**backend.bytes_per_rank, Tier.REMOTE: 0},
        chunks={**backend.chunks, Tier.REMOTE: held},
    )


def _alerts(series: Series, _planned: TierPlan) -> Iterator[Alert]:
    yield Alert(
        "KVCacheTierRemoteUnreachable",
        f"max by (pod) ({remote_tier.DEGRADED}{{{series.matchers}}}) > 0",
        minutes=5,
        severity="warning",
        summary="an engine cannot use its remote tier",
        description="{{ $labels.pod }} serves from its own tiers, as the store does not answer, is full or "
        "refuses it: the engine's log says which. It takes the store up again by itself.",
    )
    yield Alert(
        "KVCacheTierRemoteCorrupt",
        f"sum by (pod) (increase({remote_tier.CORRUPT_CHUNKS}_total{{{series.matchers}}}[1h])) > 0",
        # one damaged value is one too many, and it is gone from the store already
        minutes=0,
        severity="warning",
        summary="a store does not give back what was written to it",
        description="{{ $value | humanize }} values that {{ $labels.pod }} read from the store were not as "
        "written in the last hour. They were deleted and computed anew; look after who else may write there.",
    )
    yield Alert(
        "KVCacheTierRemoteDoesNotPay",
        f"max by (pod) ({remote_tier.PAYS}{{{series.matchers}}}) == 0",
        minutes=60,
        severity="warning",
        summary="a remote tier is slower than computing",
        description="{{ $labels.pod }} computes every prompt sooner than it reads from the store, so the "
        "store is not used: the engine's log has both figures. A faster network pays, or take tiers.remote "
        "away.",
    )


def _panels(series: Series) -> Iterator[Panel]:
    # each engine tells the store's own figures
    sizes = {"used": remote_tier.USED_BYTES, "capacity": remote_tier.CAPACITY_BYTES}
    of_the_store = {legend: f"max({name}{{{series.matchers}}})" for legend, name in sizes.items()}
    yield "Remote tier: bytes used and there", "bytes", of_the_store
    moved = {"read": remote_tier.LOAD_BYTES, "written": remote_tier.STORE_BYTES}
    yield "Remote tier: bytes read and written a second", "Bps", series.rates(moved)
    chunks = {
        "found": remote_tier.HIT_CHUNKS,
        "absent": remote_tier.ABSENT_CHUNKS,
        "gone when read": remote_tier.VANISHED_CHUNKS,
        "not written": remote_tier.DROPPED_CHUNKS,
        "failed": remote_tier.FAILED_CHUNKS,
        "corrupt": remote_tier.CORRUPT_CHUNKS,
    }
    yield "Remote tier: chunks a second", "short", series.rates(chunks)
    degraded = series.gauges({"engines": remote_tier.DEGRADED})
    yield "Remote tier: engines that do without it", "short", degraded


def _in_use(tier: Mapping[str, Any]) -> str:
    if tier.get("pays") is not False:
        return ""
    return (
        "its remote tier is not used, because computing is sooner than reading from it: give it a faster "
        "network, or none"
    )


TRAITS: Final = TierTraits(
    serve=_serve,
    degraded=remote_tier.DEGRADED,
    pays=remote_tier.PAYS,
    alerts=_alerts,
    panels=_panels,
    in_use=_in_use,
)
