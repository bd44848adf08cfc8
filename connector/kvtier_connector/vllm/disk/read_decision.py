"""Whether a prompt's chunks are read from disk sooner than computed, and who is told if they never are."""

import time
from collections.abc import Sequence

from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.worth.admission import ReadingPays
from kvtier_connector.core.disk.worth.prefill_model import TokenSpan
from kvtier_connector.vllm.logger import log


class ReadDecision:
    """Asks the break-even for one engine's chunks.

    Args:
        disk: The tier.
        chunk_tokens: Tokens of a chunk.
        most_tokens: Tokens of the longest prompt.
    """

    def __init__(self, disk: DiskTier, chunk_tokens: int, most_tokens: int) -> None:
        self._disk = disk
        self._chunk_tokens = chunk_tokens
        self._most_tokens = most_tokens
        self._bytes_per_token = disk.block_bytes / chunk_tokens
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
        size_bytes = (len(end_tokens) + self._disk.loading) * self._disk.block_bytes
        pays = self._disk.break_even.reading_pays(TokenSpan.of(first, last), size_bytes) is ReadingPays.PAYS
        self._is_read = self._is_read or pays
        return pays

    def learn(self) -> None:
        """Have the disk looked at from time to time, and say once if it never pays."""
        self._disk.learn(time.monotonic(), is_in_use=self._is_read)
        self._is_read = False
        if self.can_pay == self._is_warned:
            self._is_warned = not self._is_warned
            whole = TokenSpan.of(0, self._most_tokens)
            figures = self._disk.break_even.describe(whole, self._most_tokens * self._bytes_per_token)
            if self._is_warned:
                log.warning(
                    "kvtier: the disk tier does not pay, so it is neither read nor written: %s; a faster "
                    "disk, or none, serves better",
                    figures,
                )
            else:
                log.info("kvtier: the disk tier pays again: %s", figures)

    def _reading_pays(self, first: int, last: int) -> ReadingPays:
        size_bytes = (last - first) * self._bytes_per_token
        return self._disk.break_even.reading_pays(TokenSpan.of(first, last), size_bytes)
