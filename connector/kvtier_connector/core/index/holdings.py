"""Whose the slots of a tier are, and what was promised of them.

Every promise is noted, and costs nothing while its block would stay anyway. Blocks that would have left, and
that their promise alone keeps, are bounded: beyond so many, of those that are looked at the one leaves that
was promised less, or for later, which is counted. So the rest of the tier is as if nothing had been promised.
"""

from collections.abc import Callable
from math import ceil
from typing import Final

import numpy as np

from kvtier_common.hints import Priority
from kvtier_connector.config import MOST_TENANTS
from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction_kernels import Depths, Moment, Rows, ScanPath, Storer
from kvtier_connector.core.index.hints import NO_HINT, BlockHint, Sharing
from kvtier_connector.core.index.keytable import Slots

_TICKS_PER_S: Final = 4  # 2**29 of them are four years
_SWEPT_RUNS: Final = 64  # looked at in an engine's step
_UNBOUNDED: Final = 1 << 62  # slots


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
        self._is_hinted = False  # since all was forgotten; most engines hear of nothing
        self.kept = 0  # slots that only a promise has kept, also if its time is just over
        self.broken = 0  # promises that did not keep their slot, since the start
        self.resize(len(rows))

    def resize(self, slots: int) -> None:
        """Take shares of so many slots from now on: those that are there."""
        self._most_kept = int(self._retained_share * slots)
        self.shares[kernels.MOST, kernels.NOBODY] = _UNBOUNDED
        for number, part in enumerate(self._parts, kernels.NOBODY + 1):
            self.shares[kernels.GUARANTEED, number] = int(part.guaranteed * slots)
            self.shares[kernels.MOST, number] = int(part.most * slots) if part.most < 1 else _UNBOUNDED

    def clear(self) -> None:
        """Forget all."""
        self._is_hinted = False
        self.shares[kernels.HELD] = 0
        self._rows[:, kernels.HINT] = kernels.NONE
        self._rows[:, kernels.SPAN] &= np.uint32(kernels.SPAN_MASK)
        self.kept = 0

    def held(self) -> dict[str, int]:
        """Return how many slots each tenant has, by name; nobody's under the empty one."""
        return dict(zip(("", *self._number_of), self.shares[kernels.HELD].tolist(), strict=True))

    def slots_of(self, tenant: str) -> Slots:
        """Return the slots that are a tenant's; none if there is no such tenant."""
        number = self._number_of.get(tenant)
        return np.empty(0, np.int32) if number is None else self._slots_of_number(number)

    def slots_of_nobody(self) -> Slots:
        """Return the slots that are no tenant's, the free ones among them."""
        return self._slots_of_number(kernels.NOBODY)

    def _slots_of_number(self, number: int) -> Slots:
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
            self._promise(slots, hint)

    def use(self, slots: Slots, hint: BlockHint | None) -> None:
        """Have slots be used by a request, with what it promises of them: root to tail."""
        if hint is None and not self._is_hinted:
            return
        self._is_hinted = True
        hint = hint or NO_HINT
        is_low = hint.priority is Priority.LOW
        promise = kernels.LOW if is_low else kernels.NONE
        tick = self._tick(self._clock())
        self.kept -= kernels.reuse(self._rows, self.shares, slots, self._tenant(hint), promise, tick)
        if hint.until_s and not is_low:
            self._promise(slots, hint)

    def let_go(self, slots: Slots) -> None:
        """Make slots free that were taken."""
        if not self._is_hinted:
            self.shares[kernels.HELD, kernels.NOBODY] -= len(slots)
            return
        self.kept -= kernels.let_go(self._rows, self.shares, slots)

    @property
    def is_weighed(self) -> bool:
        """Whether anything is said of any slot."""
        return self._is_hinted or bool(self._parts)

    def choose(self, slots: Slots, storer: Storer, wanted: int) -> tuple[Slots, Slots, Depths]:
        """Return what of slots leaves, that come in the order of leaving: see the kernel."""
        tick = self._tick(self._clock())
        self.kept -= kernels.end_kept(self._rows, slots, tick)
        room = self._most_kept - self.kept
        return kernels.choose(self._rows, self.shares, slots, storer, tick, room, wanted)

    def keep(self, passed: Slots, leaving: Slots, staying: Slots) -> None:
        """Keep what was passed over for its promise, while `leaving` leave; others stay for other reasons."""
        if self._is_hinted:
            tick = self._tick(self._clock())
            added, broken = kernels.keep(self._rows, passed, leaving, staying, tick)
            self.kept += added
            self.broken += broken

    @property
    def promised(self) -> int:
        """How many slots that nothing holds are promised to stay; as many as promises can keep, at most."""
        if not self._is_hinted:
            return 0
        hints = self._rows[:, kernels.HINT]
        is_live = (hints & np.uint32(kernels.PROMISE_MASK) >= kernels.NORMAL) & (
            hints >> np.uint32(kernels.UNTIL_SHIFT) > self._tick(self._clock())
        )
        return min(int((is_live & (self._rows[:, kernels.HOLDS] == 0)).sum()), self._most_kept)

    def moment(self, uses: int) -> Moment:
        """Return the present, at so many uses of blocks."""
        return Moment(uses, self._tick(self._clock()))

    def storer(self, hint: BlockHint | None, incoming: int) -> Storer:
        """Return for whom room is made."""
        return Storer(bool(self._parts), self._tenant(hint or NO_HINT), incoming)

    def sweep(self) -> None:
        """End some of the promises whose time is over, so that `kept` is not far from the truth."""
        if self.kept:
            runs = min(_SWEPT_RUNS, self._path.runs)
            ended, first = kernels.sweep(self._rows, self._path, runs, self._tick(self._clock()))
            self._path = self._path._replace(first=first)
            self.kept -= ended

    def _promise(self, slots: Slots, hint: BlockHint) -> None:
        tick = self._tick(self._clock())
        until = min(ceil((hint.until_s - self._start_s) * _TICKS_PER_S), kernels.LARGEST_TICK)
        if until > tick:
            promise = kernels.HIGH if hint.priority is Priority.HIGH else kernels.NORMAL
            kernels.promise(self._rows, slots, promise, until, tick)

    def _tick(self, now_s: float) -> int:
        return int((now_s - self._start_s) * _TICKS_PER_S)

    def _tenant(self, hint: BlockHint) -> int:
        return self._number_of.get(hint.tenant, kernels.NOBODY)
