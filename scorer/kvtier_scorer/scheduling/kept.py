"""Prompts that their requests said would come again, and the pods that keep them until then.

An engine keeps such blocks in memory beyond their turn, up to a part of the tier; the index, which guesses by
an LRU, would forget them. So the last block of each such prompt is remembered here, with its pod and until
when, and counts as held. A pod that says itself what it holds needs none of this.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_MOST_PROMPTS: Final = 1 << 16
"""Of all pods together; some 300 bytes each."""
_MARKS: Final = 1 << 18
_SWEEP_S: Final = 1.0
"""At least between two looks for what has ended, which take milliseconds."""


class KeptPrompts:
    """Which pod keeps which prompt. Not thread-safe; times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        # by the hash of a prompt's last block: until when each pod keeps it, and how many blocks it has
        self._until_s: dict[int, dict[int, tuple[float, int]]] = {}
        self._blocks: dict[int, int] = {}  # of each pod
        self._marks = np.zeros(_MARKS, np.uint32)  # how many of the hashes have a number's low bits
        self._prompts = 0
        self._latest_s = 0.0
        self._swept_s = -np.inf

    def __len__(self) -> int:
        return self._prompts

    def keep(
        self, pod: int, hashes: NDArray[np.uint64], until_s: float, most_blocks: int, now_s: float
    ) -> bool:
        """A pod keeps these blocks of a prompt until then, if it has room for them: at most so many in all.

        They take the place of the longest beginning of theirs that it keeps. Returns whether it does.
        """
        blocks = len(hashes)
        if not blocks or until_s <= now_s:
            return False
        before = self.lengths(hashes, np.array([pod], np.int32), now_s)
        beginning = 0 if before is None else int(before[0])
        if self._is_full(pod, blocks - beginning, most_blocks):
            self._sweep(now_s)
            if self._is_full(pod, blocks - beginning, most_blocks):
                return False
        if beginning:
            until_s = max(until_s, self._drop(int(hashes[beginning - 1]), pod))
        key = int(hashes[-1])
        self._drop(key, pod)  # one that has ended
        self._until_s.setdefault(key, {})[pod] = (until_s, blocks)
        self._marks[key & (_MARKS - 1)] += 1
        self._blocks[pod] = self._blocks.get(pod, 0) + blocks
        self._prompts += 1
        self._latest_s = max(self._latest_s, until_s)
        return True

    def lengths(
        self, hashes: NDArray[np.uint64], pods: NDArray[np.int32], now_s: float
    ) -> NDArray[np.int32] | None:
        """How many blocks of a prompt, from the first, each of these pods keeps; None where none does."""
        if not self._prompts:
            return None
        if now_s > self._latest_s:
            self._clear()
            return None
        found: dict[int, int] = {}
        marked = np.flatnonzero(self._marks[(hashes & np.uint64(_MARKS - 1)).view(np.int64)])
        for place in marked[::-1].tolist():
            for pod, (until_s, _) in self._until_s.get(int(hashes[place]), {}).items():
                if until_s >= now_s:
                    found.setdefault(pod, place + 1)
        if not found:
            return None
        kept = np.array([found.get(pod, 0) for pod in pods.tolist()], np.int32)
        return kept if kept.any() else None

    def forget(self, pod: int) -> None:
        """The pod has left: its number may be another's next."""
        if pod in self._blocks:
            for key in [key for key, pods in self._until_s.items() if pod in pods]:
                self._drop(key, pod)

    def _is_full(self, pod: int, blocks: int, most_blocks: int) -> bool:
        return self._blocks.get(pod, 0) + blocks > most_blocks or self._prompts >= _MOST_PROMPTS

    def _drop(self, key: int, pod: int) -> float:
        """Returns until when it was kept."""
        pods = self._until_s.get(key, {})
        if pod not in pods:
            return 0.0
        until_s, blocks = pods.pop(pod)
        if not pods:
            del self._until_s[key]
        self._marks[key & (_MARKS - 1)] -= 1
        self._blocks[pod] -= blocks
        if not self._blocks[pod]:
            del self._blocks[pod]
        self._prompts -= 1
        return until_s

    def _sweep(self, now_s: float) -> None:
        if now_s - self._swept_s < _SWEEP_S:
            return
        self._swept_s = now_s
        ended = [
            (key, pod)
            for key, pods in self._until_s.items()
            for pod, (until_s, _) in pods.items()
            if until_s < now_s
        ]
        for key, pod in ended:
            self._drop(key, pod)
