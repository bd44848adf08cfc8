"""Whether an engine's waiting requests read from a tier, or compute."""

from collections.abc import Sequence
from typing import Final

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import ReadingPays, TokenSpan
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.vllm.upstream.compat import log

_ADVICE: Final = {
    Tier.DISK: "a faster disk, or none, serves better",
    Tier.REMOTE: "a faster network or server, or no remote tier, serves better",
}


class ReadDecision:
    """Asks the break-even for one engine's chunks."""

    def __init__(self, tier: TierBehind, chunk_tokens: int, most_tokens: int) -> None:
        self._tier = tier
        self._chunk_tokens = chunk_tokens
        self._most_tokens = most_tokens
        self._bytes_per_token = tier.block_bytes / chunk_tokens
        self._is_read = False
        self._is_warned = False

    @property
    def can_pay(self) -> bool:
        """Whether reading can pay: not of the longest prompt, of none."""
        return self._reading_pays(0, self._most_tokens) is not ReadingPays.DOES_NOT

    def may_pay(self, end_tokens: int) -> bool:
        """Tell of a chunk whether it can pay to read it and all behind it, of the longest prompt."""
        first = max(0, end_tokens - self._chunk_tokens)
        return self._reading_pays(first, max(end_tokens, self._most_tokens)) is ReadingPays.PAYS

    def decide(self, end_tokens: Sequence[int]) -> bool:
        """Decide whether chunks are read, behind what is being read already: whether that is sooner."""
        first, last = max(0, min(end_tokens) - self._chunk_tokens), max(end_tokens)
        size_bytes = (len(end_tokens) + self._tier.loading) * self._tier.block_bytes
        pays = self._tier.break_even.reading_pays(TokenSpan.of(first, last), size_bytes) is ReadingPays.PAYS
        self._is_read = self._is_read or pays
        return pays

    def learn(self, now_s: float) -> None:
        """Have the tier looked at from time to time, and say once if it never pays."""
        self._tier.learn(now_s, is_in_use=self._is_read)
        self._is_read = False
        if self.can_pay == self._is_warned:
            self._is_warned = not self._is_warned
            whole = TokenSpan.of(0, self._most_tokens)
            figures = self._tier.break_even.describe(whole, self._most_tokens * self._bytes_per_token)
            if self._is_warned:
                log.warning(
                    "kvtier: the %s tier does not pay, so it is neither read nor written: %s; %s",
                    self._tier.tier.label,
                    figures,
                    _ADVICE[self._tier.tier],
                )
            else:
                log.info("kvtier: the %s tier pays again: %s", self._tier.tier.label, figures)

    def _reading_pays(self, first: int, last: int) -> ReadingPays:
        size_bytes = (last - first) * self._bytes_per_token
        return self._tier.break_even.reading_pays(TokenSpan.of(first, last), size_bytes)
