"""What each pod may send and be asked for, and how many blocks the views of all pods may hold together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kvtier_common.backoff import doubled_s
from kvtier_scorer.config.contract import BYTES_PER_HELD_BLOCK
from kvtier_scorer.index.memory import allowed_bytes

MOST_MESSAGE_BYTES: Final = 4 << 20  # all its frames together: the tokens of 800,000 in one step
LARGE_MESSAGES: Final = 4  # of all pods, that are held at a time; those of up to 64 KiB need no turn
MOST_REPLAY_BYTES: Final = 32 << 20
MOST_REPLAYED: Final = 1 << 15  # messages; vLLM keeps 10,000 unless it is told otherwise
BLOCK_BYTES: Final = 128
"""What a block or an event counts beside its bytes, be it one: learning it takes up to 10 us."""
_LEAST_BYTES: Final = 1024  # what a message counts at least: reading it takes time, however short it is
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 300.0
_KEPT_S: Final = 60.0
_MOST_LEFT: Final = 4096  # pods that left; the one that did first is forgotten
_LONG_S: Final = 600.0  # within its rate for so long, a pod's earlier excesses are forgotten
_REPLAYS: Final = 8  # in a row; a connection that is lost again and again asks for one each time
_REPLAY_S: Final = 10.0  # until one more may be asked for
_OF_ALLOWED: Final = 3 / 4  # of what the index may grow to: 3/8 of a memory limit


@dataclass(frozen=True, slots=True)
class ByteRate:
    """The rate at which one pod may send: at once, and from then on.

    A pod that computes and evicts 100,000 tokens a second comes to half of the default, its blocks counted.
    """

    burst_bytes: float = 64 << 20
    bytes_per_s: float = 4 << 20


class ByteRateLimiter:
    """A token bucket of bytes for one pod: what it sends empties it, and time fills it up again."""

    def __init__(self, rate: ByteRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._left_bytes = float(rate.burst_bytes)
        self._at_s = clock()

    @property
    def is_exceeded(self) -> bool:
        """Whether the pod has sent more than it may."""
        return self._left_bytes < 0

    def consume(self, size_bytes: int) -> None:
        """Counts what was received, 1 KiB at least."""
        now_s = self._clock()
        filled_bytes = self._left_bytes + (now_s - self._at_s) * self._rate.bytes_per_s
        self._left_bytes = min(self._rate.burst_bytes, filled_bytes) - max(_LEAST_BYTES, size_bytes)
        self._at_s = now_s


def wait_s(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling from 1 s, 5 minutes at most."""
    return doubled_s(_FIRST_S, _LONGEST_S, failures - 1) if failures else 0.0


@dataclass(slots=True)
class PodLimits:
    """The limits of one pod, for all its connections one after another."""

    rate_limiter: ByteRateLimiter
    excesses: int = 0  # how often it sent too much; 1 for the first time, or for the first in 10 minutes
    resume_s: float = 0.0  # when it is listened to again
    replay_failures: int = 0  # replays that failed, in a row
    next_replay_s: float = 0.0  # when it may be asked for a replay again, after one that failed
    replays_left: float = _REPLAYS  # how many replays it might be asked for at `last_replay_s`
    last_replay_s: float = 0.0
    left_s: float = 0.0

    def on_excess(self, began_s: float, now_s: float) -> None:
        """The pod sent too much on a connection of that age: it is left alone, longer each time."""
        self.excesses = self.excesses + 1 if now_s - began_s < _LONG_S else 1
        self.resume_s = now_s + wait_s(self.excesses)

    def may_replay(self, now_s: float) -> bool:
        """Whether the pod may be asked for a replay now."""
        return now_s >= self.next_replay_s and self._replays_left(now_s) >= 1

    def begin_replay(self, now_s: float) -> None:
        """The pod is asked for a replay."""
        self.replays_left, self.last_replay_s = self._replays_left(now_s) - 1, now_s

    def on_replayed(self) -> None:
        """The replay succeeded."""
        self.replay_failures = 0

    def on_replay_failed(self, now_s: float) -> None:
        """The replay failed; the pod is asked less and less often."""
        self.replay_failures += 1
        self.next_replay_s = now_s + wait_s(self.replay_failures)

    def _replays_left(self, now_s: float) -> float:
        return min(_REPLAYS, self.replays_left + (now_s - self.last_replay_s) / _REPLAY_S)


class PodLimitsByAddress:
    """The limits of all pods."""

    def __init__(self, rate: ByteRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._followed: dict[str, PodLimits] = {}
        self._left: dict[str, PodLimits] = {}

    def follow(self, address: str) -> PodLimits:
        """The limits of a pod, followed from now on: its earlier ones if it left within the last minute."""
        limits = self._left.pop(address, None)
        if limits is None or self._clock() - limits.left_s > _KEPT_S:
            limits = PodLimits(ByteRateLimiter(self._rate, self._clock))
        self._followed[address] = limits
        return limits

    def forget(self, address: str) -> None:
        """The pod is no longer followed; its limits are kept for a minute."""
        limits = self._left[address] = self._followed.pop(address)
        limits.left_s = self._clock()
        if len(self._left) > _MOST_LEFT:
            del self._left[next(iter(self._left))]


class Holder(Protocol):
    """A pod's view, which holds blocks."""

    def evict(self) -> None:
        """Forgets all its blocks."""


class HeldBlocks:
    """Counts the blocks of all views. Beyond the bound, the view with the most blocks is evicted.

    What a pod's events may come to is bounded by what its tiers are planned to hold, but a tier that nobody
    planned, or pods that nobody did, could claim more than the picker has memory for.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Holder, int] = {}
        self._sum = 0

    def hold(self, holder: Holder, blocks: int) -> None:
        """A view holds so many blocks from now on; it may be the one that is evicted."""
        self._sum += blocks - self._held.get(holder, 0)
        self._held[holder] = blocks
        while self._sum > self._most:
            evicted = max(self._held, key=self._held.__getitem__)
            self.release(evicted)
            evicted.evict()

    def release(self, holder: Holder) -> None:
        """A view holds nothing any more. May be called again."""
        self._sum -= self._held.pop(holder, 0)


def most_blocks() -> int:
    """The number of blocks that this process has memory for."""
    return int(allowed_bytes() * _OF_ALLOWED) // BYTES_PER_HELD_BLOCK
