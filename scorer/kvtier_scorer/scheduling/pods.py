"""The pods that may be picked, as columns: one array an attribute, a pod's number its place."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import Tier
from kvtier_scorer.scheduling.kept import KeptPrompts

if TYPE_CHECKING:
    from kvtier_scorer.index.prefix_index import PrefixIndex

_COLUMNS: Final = (
    "queue_depth", "running", "kv_cache_utilization", "read_at_s", "_picked", "_counted_from_s",
)  # fmt: skip

_MOST_ENTRIES: Final = 1 << 31
"""Of one tier in the index: more than a pod can hold, and less than the index can count."""


@dataclass(frozen=True, slots=True)
class PodInfo:
    """The identity of a pod. Another pod that gets the same address is a new one."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class PodLoad:
    """One reading of an engine's metrics, at a moment on the clock of `Scheduler.pick`.

    Raises ValueError: a figure is negative or not a number.
    """

    queue_depth: int
    running: int
    kv_cache_utilization: float
    loras: frozenset[str]
    at_s: float

    def __post_init__(self) -> None:
        # one NaN would make every pod's score one
        if not (isfinite(self.at_s) and isfinite(self.kv_cache_utilization)):
            raise ValueError(f"not a number: {self}")
        if min(self.queue_depth, self.running, self.kv_cache_utilization) < 0:
            raise ValueError(f"negative: {self}")


class PodTable:
    """The pods that may be picked. Not thread-safe: one event loop owns it, its index and its scheduler.

    A pod that is not ready must not be here: `drop` it at once and `put` it again. The columns are of the
    last reading (at `read_at_s`; -inf before the first). The index numbers the pods. Prompts are kept in
    `retained_share` of a pod's CPU tier at most, as its engine keeps them.
    """

    def __init__(self, index: "PrefixIndex", retained_share: float = RETAINED_SHARE) -> None:
        self.index = index
        self._retained_share = retained_share
        self.kept = KeptPrompts()
        self.queue_depth = np.zeros(0, np.int64)
        self.running = np.zeros(0, np.int64)
        self.kv_cache_utilization = np.zeros(0, np.float64)
        self.read_at_s = np.zeros(0, np.float64)
        self.loras: dict[int, frozenset[str]] = {}
        self._picked = np.zeros(0, np.int64)
        self._counted_from_s = np.zeros(0, np.float64)
        self._numbers: dict[str, int] = {}
        self._infos: dict[int, PodInfo] = {}
        self._everyone = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[PodInfo]:
        return iter(self._infos.values())

    def put(self, info: PodInfo, entries: Mapping[Tier, int]) -> int:
        """Let a pod be picked, and return its number; another one at its address is dropped.

        One that is there already stays as it is. `entries` are blocks to take for each tier until `resize`
        tells better.
        """
        number = self._numbers.get(info.address)
        if number is not None and self._infos[number].name == info.name:
            return number
        self.drop(info.address)
        number = self.index.add_pod({tier: min(blocks, _MOST_ENTRIES) for tier, blocks in entries.items()})
        self._grow(number + 1)
        self.queue_depth[number] = self.running[number] = self._picked[number] = 0
        self.kv_cache_utilization[number] = 0.0
        self.read_at_s[number] = self._counted_from_s[number] = -inf
        self._numbers[info.address] = number
        self._infos[number] = info
        self._count()
        return number

    def drop(self, address: str) -> None:
        """Never pick that pod again, and forget what it held. One that is not there is no error."""
        number = self._numbers.pop(address, None)
        if number is not None:
            del self._infos[number]
            self.loras.pop(number, None)
            self.index.remove_pod(number)
            self.kept.forget(number)
            self._count()

    def load(self, address: str, load: PodLoad) -> None:
        """Take a reading. One of a pod that has left, or older than the last one, comes too late."""
        number = self._numbers.get(address)
        if number is None or load.at_s < self.read_at_s[number]:
            return
        self.queue_depth[number] = load.queue_depth
        self.running[number] = load.running
        self.kv_cache_utilization[number] = load.kv_cache_utilization
        self.read_at_s[number] = self._counted_from_s[number] = load.at_s
        self._picked[number] = 0
        self.loras[number] = load.loras

    def resize(self, address: str, tier: Tier, entries: int) -> None:
        """Tell how many blocks a pod's tier truly holds. A pod that has left is no error."""
        number = self._numbers.get(address)
        entries = min(entries, _MOST_ENTRIES)
        if number is not None and self.index.capacity(number, tier) != entries:
            self.index.resize(number, tier, entries)

    def number(self, address: str) -> int | None:
        """Number of the pod at `address`; None where there is none."""
        return self._numbers.get(address)

    def info(self, number: int) -> PodInfo:
        """The pod of that number. Raises KeyError: there is none."""
        return self._infos[number]

    def is_there(self, name: str, address: str) -> bool:
        """Whether that pod is at that address."""
        number = self._numbers.get(address)
        return number is not None and self._infos[number].name == name

    def candidates(self, subset: Iterable[str] | None) -> NDArray[np.int32]:
        """Numbers of the pods at the addresses in `subset`, of all of them for None, ascending.

        An address without a port stands for all that its pod serves on.
        """
        if subset is None:
            return self._everyone
        numbers = set()
        for address in subset:
            number = self._numbers.get(address)
            if number is not None:
                numbers.add(number)
            else:
                numbers.update(at for pod, at in self._numbers.items() if pod.rpartition(":")[0] == address)
        return np.array(sorted(numbers), np.int32)

    def count_pick(self, number: int, now_s: float, window_s: float) -> None:
        """Count a request that was sent to a pod.

        Without a reading for `window_s` counting begins anew: those requests may be done.
        """
        if now_s - self._counted_from_s[number] > window_s:
            self._counted_from_s[number] = now_s
            self._picked[number] = 0
        self._picked[number] += 1

    def keep_prompt(self, number: int, hashes: NDArray[np.uint64], retain_s: float, now_s: float) -> None:
        """Remember that a pod keeps a prompt that was sent to it, if it has room for it in memory."""
        if not self.index.is_precise(number):
            most_blocks = int(self._retained_share * self.index.capacity(number, Tier.CPU))
            self.kept.keep(number, hashes, now_s + retain_s, most_blocks, now_s)

    def match(
        self, hashes: NDArray[np.uint64], numbers: NDArray[np.int32], now_s: float
    ) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
        """Blocks of a prompt that pods hold, by tier, and those that they keep; None where none keeps any.

        What is kept is in memory, whatever the index has forgotten.
        """
        matched = self.index.match(hashes, numbers)
        kept = self.kept.lengths(hashes, numbers, now_s)
        if kept is not None:
            for place in kept.nonzero()[0].tolist():
                if self.index.is_precise(int(numbers[place])):
                    kept[place] = 0
            np.maximum(matched[Tier.CPU], kept, out=matched[Tier.CPU])
        return matched, kept

    def pick_counts(self, numbers: NDArray[np.int32], now_s: float, window_s: float) -> NDArray[np.int64]:
        """Requests sent to each of those pods since its last reading, or within `window_s` without one."""
        picked = self._picked.take(numbers)
        picked[self._counted_from_s.take(numbers) < now_s - window_s] = 0
        return picked

    def _grow(self, pods: int) -> None:
        capacity = len(self._picked)
        if pods <= capacity:
            return
        for name in _COLUMNS:
            column = getattr(self, name)
            wider = np.zeros(max(pods, 2 * capacity), column.dtype)
            wider[:capacity] = column
            setattr(self, name, wider)

    def _count(self) -> None:
        self._everyone = np.sort(np.fromiter(self._infos, np.int32, len(self._infos)))
