"""Whose the slots of a tier are, and what was promised of them.

Promises are bounded: only so many slots are retained at a time. When they are, those whose time is over give
way to new ones, and of some that are looked at those that were promised less. Otherwise a promise is not
given, which is counted and changes nothing else.
"""

from collections.abc import Callable
from math import ceil
from typing import Final

import numpy as np

from kvtier_common.hints import Priority
from kvtier_connector.config import MOST_TENANTS
from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction_kernels import Moment, Rows, ScanPath, Storer
from kvtier_connector.core.index.hints import NO_HINT, BlockHint, Sharing
from kvtier_connector.core.index.keytable import Slots

_TICKS_PER_S: Final = 4  # 2**30 of them are eight years
_HALF_LIFE_S: Final = 60.0  # of what is seen of the uses a second
_FEWEST_RUNS: Final = 256  # looked at for a promise that has to give way
_SWEPT_RUNS: Final = 64  # looked at in an engine's step
_LOOKED_AT_FOR_EACH: Final = 8  # slots, for each promise that has to give way


class UseRate:
    """How many blocks are used a second."""

    def __init__(self, start_s: float) -> None:
        self._last_s = start_s
        self._uses = 0.0
        self._seconds = 0.0

    def add(self, uses: int, now_s: float) -> None:
        """Count uses."""
        passed_s = max(0.0, now_s - self._last_s)
        if passed_s >= 1:
            fade = 0.5 ** (passed_s / _HALF_LIFE_S)
            self._uses, self._seconds = self._uses * fade, (self._seconds + passed_s) * fade
            self._last_s = now_s
        self._uses += uses

    def per_second(self, now_s: float) -> float:
        """Return the rate: more than 0, as after a long pause one use is worth much time."""
        return max(self._uses, 1.0) / max(self._seconds + now_s - self._last_s, 1.0)


class Holdings:
    """Tenants and promises of the slots in `rows`. Raises ValueError: there are too many tenants."""

    def __init__(self, rows: Rows, path: ScanPath, sharing: Sharing, clock: Callable[[], float]) -> None:
        tenants = sharing.tenants
        if len(tenants) > MOST_TENANTS:
            raise ValueError(f"there are {len(tenants)} tenants; {MOST_TENANTS} are the most")
        self._rows = rows
        self._path = path
        self._retained_share = sharing.retained_share
        self._parts = tuple(tenants.values())
        self._number_of = {name: number for number, name in enumerate(tenants, kernels.NOBODY + 1)}
        self.shares = np.zeros((kernels.SHARE_ROWS, 1 + len(tenants)), np.int64)
        self._clock = clock
        self._start_s = clock()
        self._uses = UseRate(self._start_s)
        self._is_hinted = False  # since all was forgotten; most engines hear of nothing
        self.retained = 0  # slots that were promised something, also if its time is just over
        self.not_granted = 0  # promises that found no room since the start
        self.resize(len(rows))

    def resize(self, slots: int) -> None:
        """Take shares of so many slots from now on: those that are there."""
        self._most_retained = int(self._retained_share * slots)
        self.shares[kernels.MOST, kernels.NOBODY] = len(self._rows)
        for number, part in enumerate(self._parts, kernels.NOBODY + 1):
            self.shares[kernels.GUARANTEED, number] = int(part.guaranteed * slots)
            self.shares[kernels.MOST, number] = int(part.most * slots)

    def clear(self) -> None:
        """Forget all."""
        self._is_hinted = False
        self.shares[kernels.HELD] = 0
        self._rows[:, kernels.HINT] = kernels.NONE
        self._rows[:, kernels.SPAN] &= np.uint32(kernels.SPAN_MASK)
        self.retained = 0

    def held(self) -> dict[str, int]:
        """Return how many slots each tenant has, by name; nobody's under the empty one."""
        return dict(zip(("", *self._number_of), self.shares[kernels.HELD].tolist(), strict=True))

    def slots_of(self, tenant: str) -> Slots:
        """Return the slots that are a tenant's; none if there is no such tenant."""
        number = self._number_of.get(tenant)
        if number is None:
            return np.empty(0, np.int32)
        whose = self._rows[:, kernels.SPAN] & np.uint32(kernels.TENANT_MASK)
        return np.flatnonzero(whose == number << kernels.TENANT_SHIFT).astype(np.int32)

    def take(self, slots: Slots, hint: BlockHint | None) -> None:
        """Make slots that were free a tenant's, with what is promised of them: root to tail."""
        if hint is None:
            self.shares[kernels.HELD, kernels.NOBODY] += len(slots)
            return
        self._is_hinted = True
        is_low = hint.priority is Priority.LOW
        promise = kernels.LOW if is_low else kernels.NONE
        kernels.take(self._rows, self.shares, slots, self._tenant(hint), promise)
        if hint.until_s and not is_low:
            self._retain(slots, hint)

    def use(self, slots: Slots, hint: BlockHint | None) -> None:
        """Have slots be used by a request, with what it promises of them: root to tail."""
        if hint is None and not self._is_hinted:
            return
        self._is_hinted = True
        hint = hint or NO_HINT
        is_low = hint.priority is Priority.LOW
        promise = kernels.LOW if is_low else kernels.NONE
        self.retained -= kernels.reuse(self._rows, self.shares, slots, self._tenant(hint), promise)
        if hint.until_s and not is_low:
            self._retain(slots, hint)

    def let_go(self, slots: Slots) -> None:
        """Make slots free that were taken."""
        if not self._is_hinted:
            self.shares[kernels.HELD, kernels.NOBODY] -= len(slots)
            return
        self.retained -= kernels.let_go(self._rows, self.shares, slots)

    def count_uses(self, uses: int) -> None:
        """Take note of uses of blocks, whose pace says what a second is worth."""
        self._uses.add(uses, self._clock())

    def moment(self, uses: int) -> Moment:
        """Return the present, at so many uses of blocks."""
        now_s = self._clock()
        return Moment(uses, self._tick(now_s), self._uses.per_second(now_s) / _TICKS_PER_S)

    def storer(self, hint: BlockHint | None, incoming: int) -> Storer:
        """Return for whom room is made."""
        return Storer(bool(self._parts), self._tenant(hint or NO_HINT), incoming)

    def sweep(self) -> None:
        """Take back some of the promises whose time is over, so that `retained` is not far from the truth."""
        if self.retained:
            self._withdraw(_SWEPT_RUNS, 0, kernels.NONE, 0, self._tick(self._clock()))

    def _retain(self, slots: Slots, hint: BlockHint) -> None:
        tick = self._tick(self._clock())
        until = min(ceil((hint.until_s - self._start_s) * _TICKS_PER_S), kernels.LARGEST_TICK)
        if until <= tick:
            return
        promise = kernels.HIGH if hint.priority is Priority.HIGH else kernels.NORMAL
        wanted = len(slots) - kernels.count_retained(self._rows, slots)
        lacking = wanted - (self._most_retained - self.retained)
        if lacking > 0:
            holds = self._rows[:, kernels.HOLDS]
            holds[slots] += 1  # lest they give way to one another
            runs = max(_FEWEST_RUNS, _LOOKED_AT_FOR_EACH * lacking // kernels.RUN)
            self._withdraw(runs, lacking, promise, until, tick)
            holds[slots] -= 1
        room = max(0, self._most_retained - self.retained)
        added, refused = kernels.retain(self._rows, slots, promise, until, tick, room)
        self.retained += added
        self.not_granted += refused

    def _withdraw(self, runs: int, wanted: int, promise: int, until: int, tick: int) -> None:
        runs = min(runs, self._path.runs)
        withdrawn, first = kernels.withdraw(self._rows, self._path, runs, wanted, promise, until, tick)
        self._path = self._path._replace(first=first)
        self.retained -= withdrawn

    def _tick(self, now_s: float) -> int:
        return int((now_s - self._start_s) * _TICKS_PER_S)

    def _tenant(self, hint: BlockHint) -> int:
        return self._number_of.get(hint.tenant, kernels.NOBODY)
