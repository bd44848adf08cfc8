"""The tiers of one engine pod, sized."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.tier import Tier


@dataclass(frozen=True, slots=True)
class HugepagesPlan:
    """Explicit huge pages of one engine pod: `pages` of `page_bytes`, every rank rounded up to a page."""

    page_bytes: int
    pages: int

    @property
    def bytes(self) -> int:
        """Bytes of all pages together."""
        return self.page_bytes * self.pages


@dataclass(frozen=True, slots=True)
class TierPlan:
    """One tier of one engine pod.

    Attributes:
        capacity_bytes: All ranks together, as asked for.
        bytes_per_rank: What each rank gets, rounded as the backend and the pages need it.
        tokens: Tokens that fit, all engines of the pod together.
        states_tokens: Tokens in whose place it keeps the windows and states of its prefixes.
        hugepages: Pages under the tier; None where there are none.
        observed_tokens: Tokens that fit, as a running engine says; None where none was asked.
    """

    capacity_bytes: int
    bytes_per_rank: int
    tokens: int
    hugepages: HugepagesPlan | None = None
    observed_tokens: int | None = None
    states_tokens: int = 0

    @property
    def held_tokens(self) -> int:
        """What an engine says that it holds: it does not tell tokens from windows and states."""
        return self.tokens + self.states_tokens


@dataclass(frozen=True, slots=True)
class TiersPlan:
    """All tiers of one engine pod.

    Attributes:
        by_tier: Those that there are; the device's own cache only where its size is known.
        observed_block_tokens: Tokens of one block, as a running engine says; None where none was asked.
    """

    by_tier: Mapping[Tier, TierPlan]
    observed_block_tokens: int | None = None

    @property
    def gpu(self) -> TierPlan | None:
        """The device's own cache; None where its size is not known."""
        return self.by_tier.get(Tier.GPU)

    @property
    def cpu(self) -> TierPlan:
        """CPU memory, which is always there."""
        return self.by_tier[Tier.CPU]

    @property
    def disk(self) -> TierPlan | None:
        """Local disk; None where there is none."""
        return self.by_tier.get(Tier.DISK)
