"""Brings prompts' chunks to memory ahead of their requests, within bounds, beside what requests wait for."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.vllm.behind.promotions import Promotions

MEMORY_SHARE: Final = 4
"""One slot of so many of the memory, at most, is filled ahead of requests at a time."""

MOST_LOOKED_AT: Final = 512
"""Chunks of a prefetch that are looked at in one go, which keeps a step waiting."""
MOST_UNDER_WAY: Final = 16
"""Prefetches; what is beyond brings nothing."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a prompt."""

    end_tokens: int  # where it ends in the prompt
    key: bytes


@dataclass(frozen=True, slots=True)
class Fetched:
    """What has become of a prompt's chunks."""

    here: int  # chunks in memory
    coming: int  # chunks that are being read, or that a tier is asked for
    absent: int  # chunks that no tier has, that cannot be read, or that are beyond the bound


class Tiers(Protocol):
    """What is asked of the tiers behind memory."""

    promotions: Promotions

    def poll(self) -> None:
        """Take note of what the tiers have done."""

    def on_schedule_end(self) -> None:
        """Begin to read what was looked up."""


@dataclass(slots=True)
class _Prefetch:
    chunks: int  # of the prompt
    here: int  # those that were in memory, or have come
    coming: deque[Chunk]
    unseen: int  # of these, at its beginning, those that were not looked at yet
    most: int  # slots that it fills until it ends


class Prefetches:
    """Those that are under way; requests' own lookups bring their chunks by the same way."""

    def __init__(self, memory: BlockIndex, tiers: Tiers) -> None:
        self._memory = memory
        self._tiers = tiers
        self._under_way = dict[str, _Prefetch]()
        self._numbers = count(1)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._under_way)

    def __contains__(self, name: object) -> bool:
        """Tell whether one has not ended."""
        return name in self._under_way

    def begin(self, chunks: Sequence[Chunk]) -> tuple[str, Fetched]:
        """Begin to bring a prompt's chunks, root to tail; returns its name until `look` says it has ended.

        What is retained does not leave for it.
        """
        name = f"kvtier-prefetch-{next(self._numbers)}"
        under_way = sum(len(prefetch.coming) for prefetch in self._under_way.values())
        filled = sum(prefetch.most for prefetch in self._under_way.values())  # what has come is held, too
        room = min(
            self._memory.capacity // MEMORY_SHARE - filled,
            self._memory.reservable - self._memory.promised - under_way,
            self._memory.capacity if len(self._under_way) < MOST_UNDER_WAY else 0,
        )
        lacking = [chunk for chunk in chunks if self._memory.state(chunk.key) is not BlockState.READY]
        coming = deque(lacking[: max(0, room)])
        here, most = len(chunks) - len(lacking), len(coming)
        self._under_way[name] = _Prefetch(len(chunks), here, coming, most, most)
        return name, self.look(name)

    def look(self, name: str) -> Fetched:
        """Have a prefetch go on, and tell how far it is; when nothing is coming any more it has ended.

        Of a long one it looks at a part, each time at the next.
        """
        prefetch = self._under_way[name]
        self._tiers.poll()
        lookup = self._tiers.promotions.lookup
        for _ in range(min(len(prefetch.coming), MOST_LOOKED_AT)):
            chunk = prefetch.coming.popleft()
            state = lookup(chunk.key, name, chunk.end_tokens, anyway=True)
            prefetch.here += state is BlockState.READY
            prefetch.unseen -= prefetch.unseen > 0
            if state is BlockState.PENDING:
                prefetch.coming.append(chunk)
        self._tiers.on_schedule_end()
        here, coming = prefetch.here, len(prefetch.coming)
        if not coming:
            self.end(name)
        return Fetched(here, coming, prefetch.chunks - here - coming)

    def has_unseen(self, name: str) -> bool:
        """Tell whether a prefetch counts chunks as coming that were not looked at yet."""
        return name in self._under_way and self._under_way[name].unseen > 0

    def end(self, name: str) -> None:
        """Let go of one; what is being read for it stays in memory like anything else."""
        if self._under_way.pop(name, None) is not None:
            self._tiers.promotions.on_request_finished(name)
