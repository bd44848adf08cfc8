"""The store that is served: let go of when its disk fails, and opened again when that can be used."""

import errno
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import Self

from kvtier_connector.core.behind.messages import Order
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.timings import Timings
from kvtier_connector.errors import ConnectorError, DiskError

_HOPELESS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EBADF}
)
"""Full, read-only or gone: the next block would meet the same."""
_IN_A_ROW: Final = 3
"""Failed blocks after which a disk is not trusted. A bad sector is one; what fails three times, fails."""


@dataclass(frozen=True, slots=True)
class Health:
    """What the last transfers have shown."""

    failures: int = 0  # failed blocks in a row
    attempts: int = 0  # how often the disk was tried again since a block has last shown that it works

    def after(self, error: OSError | None) -> Self:
        """Return the health after a transfer that ended so."""
        if error is None:
            return type(self)()
        hopeless = error.errno in _HOPELESS
        return replace(self, failures=_IN_A_ROW if hopeless else self.failures + 1)

    @property
    def is_down(self) -> bool:
        """Whether nothing should be asked of the disk."""
        return self.failures >= _IN_A_ROW


class ReopeningStore:
    """One store after another; each is opened when the one before it is closed."""

    def __init__(
        self,
        store: Store,
        reopen: Callable[[], Store],
        timings: Timings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store: Store | None = store  # None while the disk is not used
        self.generation = store.generation  # of what is in its slots
        self._reopen = reopen
        self._timings = timings
        self._clock = clock
        self._health = Health()
        self._leaving: Store | None = None
        self._retry_at_s = 0.0
        self._was_cleared = self._clear_is_due = False

    def serves(self, order: Order) -> bool:
        """Tell whether an order is for this store, and for what is in its slots now."""
        return self.store is not None and order.generation == self.generation

    @property
    def is_failing(self) -> bool:
        """Whether the store should be let go of."""
        return self._health.is_down

    def on_transfer_ended(self, failure: OSError | None) -> None:
        """Learn from a transfer."""
        self._health = self._health.after(failure)

    def let_go(self) -> None:
        """Serve no store; transfers of the last one may be under way."""
        self._leaving, self.store = self.store, None
        self._retry_at_s = self._clock() + self._retry_s

    def close_old(self) -> None:
        """Close the store that was let go of; nothing of it is under way."""
        if self._leaving is not None:
            self._leaving.close()
            self._leaving = None

    def clear(self, generation: int) -> None:
        """Clear the store, if one is served, and those that are opened after it; DiskError if that fails."""
        self.generation = generation
        # Also if it fails here: no store is ever up again with what was before, or leaves what comes after.
        self._was_cleared = self._clear_is_due = True
        if self.store is not None:
            self.store.clear()
            self._clear_is_due = False

    def try_again(self) -> Store | None:
        """Serve a store again, if the old one is closed, it is time, and the disk can be used; returns it."""
        if self._leaving is not None or self._clock() < self._retry_at_s:
            return None
        self._health = replace(self._health, attempts=self._health.attempts + 1)
        try:
            store = self._open()
        except ConnectorError:
            self._retry_at_s = self._clock() + self._retry_s
            return None
        self._health = replace(self._health, failures=0)  # no block has shown yet that it works
        self.store, self.generation = store, store.generation
        return store

    def close(self) -> None:
        """Close what is left, so that the next start finds nothing that was cleared; nothing is under way."""
        if self.store is not None:
            self.store.close()
        self.close_old()
        if self._clear_is_due:
            with suppress(ConnectorError):
                self._open().close()

    @property
    def _retry_s(self) -> float:
        return self._timings.retry_s(self._health.attempts)

    def _open(self) -> Store:
        store = self._reopen()
        if self._was_cleared:
            store.index.clear()
            try:
                store.clear()
            except DiskError:
                store.close()  # or the folder would be in use, by this process
                raise
            self._clear_is_due = False
        return store
