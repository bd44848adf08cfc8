"""The tiers of one engine pod, sized."""

from dataclasses import dataclass


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
class Tiers:
    """All tiers of one engine pod.

    Attributes:
        gpu: The device's own cache; None where its size is not known.
        cpu: CPU memory.
        disk: Local disk; None where there is none.
        observed_block_tokens: Tokens of one block, as a running engine says; None where none was asked.
    """

    gpu: TierPlan | None
    cpu: TierPlan
    disk: TierPlan | None
    observed_block_tokens: int | None = None
