"""What has been put down on disk and may not be known to the owner of the index yet."""

from collections.abc import Iterable

from kvtier_connector.core.disk.files.journal import Entries, entries_of
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.work.orders import Ended, Event


def untold(store: Store, generation: int, events: Iterable[Event]) -> Entries:
    """Return the blocks that were written: for the index they may still be pending.

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
