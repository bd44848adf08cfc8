"""Brings prompts' chunks to memory ahead of their requests, within bounds, beside what requests wait for."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Protocol

from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.vllm.behind.promotions import Promotions

MEMORY_SHARE: Final = 4
"""One slot of so many of the memory, at most, is filled ahead of requests at a time."""


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
    chunks: Sequence[Chunk]
    coming: list[Chunk]


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
        room = min(
            self._memory.capacity // MEMORY_SHARE - under_way,
            self._memory.reservable - self._memory.retained - under_way,
        )
        lacking = [chunk for chunk in chunks if self._memory.state(chunk.key) is not BlockState.READY]
        self._under_way[name] = _Prefetch(chunks, lacking[: max(0, room)])
        return name, self.look(name)

    def look(self, name: str) -> Fetched:
        """Have a prefetch go on, and tell how far it is; when nothing is coming any more it has ended."""
        prefetch = self._under_way[name]
        self._tiers.poll()
        lookup = self._tiers.promotions.lookup
        states = [lookup(chunk.key, name, chunk.end_tokens, anyway=True) for chunk in prefetch.coming]
        prefetch.coming = [
            chunk for chunk, state in zip(prefetch.coming, states, strict=True) if state is BlockState.PENDING
        ]
        self._tiers.on_schedule_end()
        here = sum(self._memory.state(chunk.key) is BlockState.READY for chunk in prefetch.chunks)
        coming = len(prefetch.coming)
        if not coming:
            self.end(name)
        return Fetched(here, coming, len(prefetch.chunks) - here - coming)

    def end(self, name: str) -> None:
        """Let go of one; what is being read for it stays in memory like anything else."""
        if self._under_way.pop(name, None) is not None:
            self._tiers.promotions.on_request_finished(name)
