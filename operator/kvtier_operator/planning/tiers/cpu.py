"""The CPU tier: memory of the pod, locked or not."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_common.metrics import cpu_tier
from kvtier_operator.api.resource import Source
from kvtier_operator.planning.base.promql import Alert, Series
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.tiers import Panel, TierTraits, by_backends
from kvtier_operator.planning.tiers.capacity import TOLERANCE, differs
from kvtier_operator.planning.units import size


def _alerts(series: Series, planned: TierPlan) -> Iterator[Alert]:
    yield Alert(
        "KVCacheTierTransfersFailing",
        f"sum by (pod) (increase({cpu_tier.FAILED_CHUNKS}_total{{{series.matchers}}}[10m])) > 0",
        minutes=5,
        severity="warning",
        summary="loads or stores of the tier fail",
        description="{{ $value | humanize }} chunks were lost to failed transfers in ten minutes on "
        "{{ $labels.pod }}. Their tokens are computed anew; the engine's log says why.",
    )
    yield Alert(
        "KVCacheTierSmallerThanPlanned",
        f"{series.gauge(cpu_tier.CAPACITY_BYTES, by='pod')} < {1 - TOLERANCE} * {planned.capacity_bytes}"
        # an idle engine's figures stand still: it has said last that it grows
        f" and on (pod) {series.gauge(cpu_tier.GROWING, by='pod')} == 0",
        minutes=10,
        severity="warning",
        summary="a CPU tier is smaller than planned",
        description="The CPU tier of {{ $labels.pod }} holds {{ $value | humanize1024 }}B, less than the "
        f"{planned.capacity_bytes:,} bytes planned: the picker sends it prefixes that it no longer has. "
        "Memory that was refused, or that a GPU's driver would not page-lock, is named in the engine's log.",
    )


def _panels(series: Series) -> Iterator[Panel]:
    sizes = {
        "used": cpu_tier.USED_BYTES,
        "capacity": cpu_tier.CAPACITY_BYTES,
        "locked": cpu_tier.PINNED_BYTES,
    }
    yield "CPU tier: bytes used and there", "bytes", series.gauges(sizes)
    left = {"to make room": cpu_tier.EVICTED_CHUNKS, "failed": cpu_tier.FAILED_CHUNKS}
    yield "CPU tier: chunks a second that left it", "short", series.rates(left)


def _in_use(tier: Mapping[str, Any]) -> str:
    pinned_bytes = tier.get("pinnedBytes")
    if pinned_bytes is None or tier["source"] != Source.OBSERVED:
        return ""
    what = f"each has a CPU tier of {size(tier['bytes'])}"
    if not differs(pinned_bytes, tier["bytes"]) or pinned_bytes > tier["bytes"]:
        return f"{what}, locked in memory"
    return f"{what}, of which {size(pinned_bytes)} are locked in memory: its log says what refused the rest"


TRAITS: Final = TierTraits(
    serve=by_backends,
    in_memory=True,
    growing=cpu_tier.GROWING,
    pinned_bytes=cpu_tier.PINNED_BYTES,
    alerts=_alerts,
    panels=_panels,
    in_use=_in_use,
)
