"""What engines reported of their tiers, in words: part of EnginesReady."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.api.status import Source
from kvtier_operator.planning.tiers.observed_tiers import differs
from kvtier_operator.planning.units import size


def tiers_in_use(tiers: Mapping[str, Any]) -> str:
    """What is worth knowing of `status.tiers`; empty where no engine has reported yet."""
    return "; ".join(filter(None, (_cpu(tiers.get("cpu") or {}), _disk(tiers.get("disk") or {}))))


def _cpu(tier: Mapping[str, Any]) -> str:
    pinned_bytes = tier.get("pinnedBytes")
    if pinned_bytes is None or tier["source"] != Source.OBSERVED:
        return ""
    what = f"each has a CPU tier of {size(tier['bytes'])}"
    if not differs(pinned_bytes, tier["bytes"]) or pinned_bytes > tier["bytes"]:
        return f"{what}, locked in memory"
    return f"{what}, of which {size(pinned_bytes)} are locked in memory: its log says what refused the rest"


def _disk(tier: Mapping[str, Any]) -> str:
    if tier.get("pays") is not False:
        return ""
    return (
        "its disk tier is not used, because computing is sooner than reading from it: give it a faster disk, "
        "or none"
    )
