"""Counts what the picker does, in plain numbers: a request pays for counting, a scrape for showing.

prometheus-client's own counters take a lock each time; ten of them for each request would cost a tenth of
what a pick costs.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.scheduling.model import Pick

DECISION_BUCKETS_S: Final = (
    0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HitTokens:
    """Tokens asked of the caches and found in them, since an engine's start or since an earlier scrape.

    The device's prefix cache is asked for every token of every prompt; `external` are the tiers beyond it.
    """

    queries: float = 0.0
    hits: float = 0.0
    external_queries: float = 0.0
    external_hits: float = 0.0


@dataclass(slots=True)
class PickerCounters:
    """All counts since the start of the picker."""

    # requests sent to each pod, by its name and address
    picks: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[int] = field(default_factory=Counter)  # requests refused, by HTTP status
    # responses seen, by HTTP status; 0 where a gateway did not tell
    responses: Counter[int] = field(default_factory=Counter)
    # picks by how long they took: one place for each of DECISION_BUCKETS_S, and one above
    decisions: list[int] = field(default_factory=lambda: [0] * (len(DECISION_BUCKETS_S) + 1))
    decision_s: float = 0.0
    prompt_tokens: int = 0
    # of the prompts' tokens, those believed to be in each tier of the picked pod
    matched_tokens: dict[Tier, int] = field(default_factory=lambda: dict.fromkeys(OF_A_POD, 0))
    confirmed: HitTokens = field(default_factory=HitTokens)  # what the engines say of their caches
    # hints about prompts' blocks, by their name and what became of them
    hints: Counter[tuple[str, str]] = field(default_factory=Counter)
    served_elsewhere: int = 0
    connections_cut_off: int = 0

    def count_pick(self, pick: Pick, seconds: float) -> None:
        """A request got its pod."""
        self.picks[pick.pod_name, pick.address] += 1
        self.decisions[bisect_left(DECISION_BUCKETS_S, seconds)] += 1
        self.decision_s += seconds
        self.prompt_tokens += pick.prompt_tokens
        for tier, tokens in pick.matched_tokens.items():
            self.matched_tokens[tier] += tokens

    def count_hits(self, address: str, increase: HitTokens) -> None:
        """An engine's counters grew by so much."""
        del address
        total = self.confirmed
        self.confirmed = HitTokens(
            total.queries + increase.queries,
            total.hits + increase.hits,
            total.external_queries + increase.external_queries,
            total.external_hits + increase.external_hits,
        )

    def copy(self) -> "PickerCounters":
        """A copy of the counts as they are now."""
        return replace(
            self,
            picks=self.picks.copy(),
            refusals=self.refusals.copy(),
            responses=self.responses.copy(),
            hints=self.hints.copy(),
            decisions=self.decisions.copy(),
            matched_tokens=self.matched_tokens.copy(),
        )

    def forget_pods(self, is_there: Callable[[str, str], bool]) -> None:
        """Drop the counts of pods that have left: names come and go without end."""
        for name, address in [key for key in self.picks if not is_there(*key)]:
            del self.picks[name, address]
