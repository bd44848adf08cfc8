"""Writing the journal anew, while the index's owner goes on."""

from collections.abc import Iterable

from kvtier_connector.core.disk.files.journal import Entries, entries_of
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.transfers.messages import Ended, Event
from kvtier_connector.core.disk.transfers.outbox import Outbox


def compact(store: Store, generation: int, outbox: Outbox) -> None:
    """Write a store's journal anew.

    Raises:
        DiskError: the disk is full, read-only or failing.
    """
    store.compact(_unacknowledged(store, generation, outbox.unacknowledged()))


def compact_if_full(store: Store, generation: int, outbox: Outbox) -> None:
    """Keep the journal within its space, also while there is much to read.

    Raises:
        DiskError: the disk is full, read-only or failing.
    """
    if store.journal_is_full:
        compact(store, generation, outbox)


def _unacknowledged(store: Store, generation: int, events: Iterable[Event]) -> Entries:
    """Return the blocks that are on disk, and in the index may still be pending.

    Args:
        store: which has them.
        generation: of what is in its slots.
        events: what the owner was told last, or will be.
    """
    key_of = {
        event.order.slot: event.order.key
        for event in events
        if isinstance(event, Ended) and event.order.write and event.error is None
        if event.order.generation == generation
    }
    blocks = ((slot, key, store.checksum(slot)) for slot, key in key_of.items())
    return entries_of([(slot, key, it) for slot, key, it in blocks if it is not None], store.shape.key_bytes)
