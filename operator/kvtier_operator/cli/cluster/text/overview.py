"""`kvtier top`: a line for each resource."""

from collections.abc import Sequence
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.cli.cluster.text.units import NONE, seconds, share
from kvtier_operator.cli.cluster.view.resource import ResourceView
from kvtier_operator.cli.cluster.view.tiers import TierRow
from kvtier_operator.cli.text.table import table
from kvtier_operator.cli.text.terminal import folded

_NAME_COLUMNS: Final = 20
"""What a name is left, before less important columns give way."""
_FIRST_TO_GO: Final = ("gpu in use", "gpu saved", "disk filled", "gpu hit")


def overview(views: Sequence[ResourceView], columns: int) -> str:
    """A table of resources, as lines of at most so many columns, with a final newline.

    Columns that say nothing of any resource are left out, and where the terminal is narrow those that say
    least of the tiers beyond the device.
    """
    if not views:
        return "no KVCacheTiers\n"
    names = [f"{each.namespace}/{each.name}" for each in views]
    found = [_cells(each) for each in views]
    shown = [title for title in found[0] if any(cells[title] != NONE for cells in found)]
    for title in _FIRST_TO_GO:
        if title in shown and _width(shown, found) + _NAME_COLUMNS > columns:
            shown.remove(title)
    rows = [(name, *(cells[title] for title in shown)) for name, cells in zip(names, found, strict=True)]
    lines = table(("name", *shown), rows, columns)
    for line in dict.fromkeys(line for each in views for line in each.unread):
        lines += folded(f"not read: {line}", columns)
    return "\n".join(lines) + "\n"


def _cells(view: ResourceView) -> dict[str, str]:
    by_tier = {each.tier: each for each in view.tiers}
    hits = {f"{tier.label} hit": share(row.hit_rate) for tier, row in _rows(by_tier)}
    filled = {
        "gpu in use" if tier is Tier.GPU else f"{tier.label} filled": share(row.filled)
        for tier, row in _rows(by_tier)
    }
    saved = {f"{tier.label} saved": seconds(row.saved_s) for tier, row in _rows(by_tier)}
    return {"ready": f"{view.ready_replicas}/{view.replicas}", **hits, **filled, **saved}


def _rows(by_tier: dict[Tier, TierRow]) -> list[tuple[Tier, TierRow]]:
    """A row of every tier, so that all resources have the same columns."""
    return [(tier, by_tier.get(tier) or TierRow(tier, None, None, None, None, None)) for tier in Tier]


def _width(titles: Sequence[str], found: Sequence[dict[str, str]]) -> int:
    return sum(2 + max(len(title), *(len(cells[title]) for cells in found)) for title in titles)
