"""When a store is let go of, and how one is opened in its place."""

import time
from collections.abc import Callable
from contextlib import suppress

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.work.health import Health
from kvtier_connector.errors import ConnectorError, DiskError


class Reopening:
    """Opens a failing disk's store again when that can be used, and not before the old one is closed.

    Args:
        reopen: opens it.
    """

    def __init__(self, reopen: Callable[[], Store]) -> None:
        self._reopen = reopen
        self._health = Health()
        self._leaving: Store | None = None
        self._retry_at_s = 0.0
        self._was_cleared = self._clear_is_due = False

    def saw(self, failure: OSError | None) -> None:
        """Learn how a transfer ended."""
        self._health = self._health.after(failure)

    @property
    def gives_up(self) -> bool:
        """Whether the store should be let go of."""
        return self._health.is_down

    def let_go(self, store: Store) -> None:
        """Take a store on that is not to be used any more; transfers of it may be under way."""
        self._leaving = store
        self._retry_at_s = time.monotonic() + self._health.retry_s

    def close_old(self) -> None:
        """Close the store that was let go of; nothing of it is under way."""
        if self._leaving is not None:
            self._leaving.close()
            self._leaving = None

    def clear(self, store: Store | None) -> None:
        """Clear the store, or none if it is let go of, and those that are opened after it.

        Raises:
            DiskError: the disk is full, read-only or failing.
        """
        # Also if it fails here: no store is ever up again with what was before, or leaves what comes after.
        self._was_cleared = self._clear_is_due = True
        if store is not None:
            store.clear()
            self._clear_is_due = False

    def try_again(self) -> Store | None:
        """Return a store, if the old one is closed, it is time, and the disk can be used."""
        if self._leaving is not None or time.monotonic() < self._retry_at_s:
            return None
        self._health = self._health.tried_again()  # until a block has shown that it works
        try:
            store = self._opened()
        except ConnectorError:
            self._retry_at_s = time.monotonic() + self._health.retry_s
            return None
        self._health = Health(retry_s=self._health.retry_s)
        return store

    def close(self) -> None:
        """Close what is left, so that the next start finds nothing that was cleared; nothing is under way."""
        self.close_old()
        if self._clear_is_due:
            with suppress(ConnectorError):
                self._opened().close()

    def _opened(self) -> Store:
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
