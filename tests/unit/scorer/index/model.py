"""What the index must do, in plain Python, slow and obvious."""

from dataclasses import dataclass, field

from kvtier_common.tier import OF_A_POD, Tier


@dataclass
class TierModel:
    """One tier of one pod."""

    capacity: int
    blocks: dict[int, None] = field(default_factory=dict)
    """What it holds; where it is approximate the newest last."""

    def sent(self, hashes: list[int]) -> None:
        kept = hashes[: self.capacity]
        for block in reversed(kept):
            self.blocks.pop(block, None)
            self.blocks[block] = None
        self.evict()

    def evict(self) -> None:
        surplus = len(self.blocks) - self.capacity
        for block in list(self.blocks)[: max(0, surplus)]:
            del self.blocks[block]

    def match(self, hashes: list[int]) -> int:
        for length, block in enumerate(hashes):
            if block not in self.blocks:
                return length
        return len(hashes)


class PodModel:
    """One pod."""

    def __init__(self, entries: dict[Tier, int]) -> None:
        self.precise = False
        self.tiers = {tier: TierModel(entries.get(tier, 0)) for tier in OF_A_POD}

    def sent(self, hashes: list[int]) -> None:
        if not self.precise:
            for tier in self.tiers.values():
                tier.sent(hashes)

    def resize(self, tier: Tier, entries: int) -> None:
        self.tiers[tier].capacity = entries
        if not self.precise:
            self.tiers[tier].evict()

    def set_precise(self, *, precise: bool) -> None:
        self.precise = precise
        for tier in self.tiers.values():
            tier.blocks.clear()
