"""The disk tier: used only where reading it pays, done without where it fails."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_common.metrics import disk_tier
from kvtier_operator.planning.base.promql import Alert, Series
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.tiers import Panel, TierTraits, by_backends


def _alerts(series: Series, _planned: TierPlan) -> Iterator[Alert]:
    yield Alert(
        "KVCacheTierDiskDegraded",
        f"max by (pod) ({disk_tier.DEGRADED}{{{series.matchers}}}) > 0",
        minutes=5,
        severity="warning",
        summary="an engine cannot use its disk tier",
        description="{{ $labels.pod }} serves from memory alone, as its disk is full, read-only, failing or "
        "too slow: the engine's log says which. It takes the disk up again by itself.",
    )
    yield Alert(
        "KVCacheTierDiskCorrupt",
        f"sum by (pod) (increase({disk_tier.CORRUPT_CHUNKS}_total{{{series.matchers}}}[1h])) > 0",
        # one damaged chunk is one too many, and it is gone from the disk already
        minutes=0,
        severity="warning",
        summary="a disk does not give back what was written to it",
        description="{{ $value | humanize }} chunks on the disk of {{ $labels.pod }} were not as written in "
        "the last hour. They were dropped and computed anew; look after the device.",
    )
    yield Alert(
        "KVCacheTierDiskDoesNotPay",
        f"max by (pod) ({disk_tier.PAYS}{{{series.matchers}}}) == 0",
        minutes=60,
        severity="warning",
        summary="a disk tier is slower than computing",
        description="{{ $labels.pod }} computes every prompt sooner than its disk reads it, so the disk is "
        "not used: the engine's log has both figures. A faster disk pays, or take tiers.disk away.",
    )


def _panels(series: Series) -> Iterator[Panel]:
    sizes = {"used": disk_tier.USED_BYTES, "capacity": disk_tier.CAPACITY_BYTES}
    yield "Disk tier: bytes used and there", "bytes", series.gauges(sizes)
    moved = {"read": disk_tier.LOAD_BYTES, "written": disk_tier.STORE_BYTES}
    yield "Disk tier: bytes read and written a second", "Bps", series.rates(moved)
    chunks = {
        "found": disk_tier.HIT_CHUNKS,
        "to make room": disk_tier.EVICTED_CHUNKS,
        "not written": disk_tier.DROPPED_CHUNKS,
        "failed": disk_tier.FAILED_CHUNKS,
        "corrupt": disk_tier.CORRUPT_CHUNKS,
    }
    yield "Disk tier: chunks a second", "short", series.rates(chunks)
    degraded = series.gauges({"engines": disk_tier.DEGRADED})
    yield "Disk tier: engines that serve from memory alone", "short", degraded


def _in_use(tier: Mapping[str, Any]) -> str:
    if tier.get("pays") is not False:
        return ""
    return (
        "its disk tier is not used, because computing is sooner than reading from it: give it a faster disk, "
        "or none"
    )


TRAITS: Final = TierTraits(
    serve=by_backends,
    degraded=disk_tier.DEGRADED,
    pays=disk_tier.PAYS,
    alerts=_alerts,
    panels=_panels,
    in_use=_in_use,
)
