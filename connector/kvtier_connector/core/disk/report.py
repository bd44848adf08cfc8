"""What the disk tier's owner is told: what has happened, and how much of it."""

from dataclasses import dataclass, field

from kvtier_connector.core.disk.transfers.messages import Ended
from kvtier_connector.errors import CorruptBlockError


@dataclass(slots=True)
class Progress:
    """What has happened since the last look. Keys are those of `load` and `store`.

    Attributes:
        loaded: blocks that are in memory now.
        lost: blocks whose load has failed or is taken for failed: they are not on disk any more.
        ended: blocks whose load has failed and ended: their memory may be given to others.
        released: blocks whose store has ended in whatever way: their memory may change again.
        stored: blocks of them that are on disk now.
        evicted: blocks that gave way on disk.
        orphans: memory slots of orders from before `forget_memory`, which have ended.
        notes: what people should be told, one line each.
    """

    loaded: list[bytes] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)
    ended: list[bytes] = field(default_factory=list)
    released: list[bytes] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    evicted: list[bytes] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    """What the tier has done since the last `take_counts`.

    Attributes:
        load_bytes: read from disk.
        load_seconds: that the disk took for them, added up over those at a time.
        store_bytes: written to disk.
        store_seconds: likewise.
        evicted: blocks that gave way.
        corrupt: blocks that were not as written.
        failed: blocks that could not be read or written.
        dropped: blocks that were not written for want of room, or of the right to write more.
    """

    load_bytes: int = 0
    load_seconds: float = 0.0
    store_bytes: int = 0
    store_seconds: float = 0.0
    evicted: int = 0
    corrupt: int = 0
    failed: int = 0
    dropped: int = 0

    def add(self, ended: Ended, block_bytes: int) -> None:
        """Count an order that has ended."""
        if ended.error is not None:
            if isinstance(ended.error, CorruptBlockError):
                self.corrupt += 1
            else:
                self.failed += 1
        elif ended.order.write:
            self.store_bytes += block_bytes
            self.store_seconds += ended.seconds
        else:
            self.load_bytes += block_bytes
            self.load_seconds += ended.seconds
