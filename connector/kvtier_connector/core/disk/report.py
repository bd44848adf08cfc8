"""What the disk tier's owner is told: what has happened, and how much of it."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """What has happened since the last look. Keys are those of `load` and `store`.

    Args:
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
    """What the tier has done since the last `take_counts`; bytes, seconds of the disk, and blocks."""

    load_bytes: int = 0
    load_seconds: float = 0.0
    store_bytes: int = 0
    store_seconds: float = 0.0
    evicted: int = 0
    corrupt: int = 0
    failed: int = 0
    dropped: int = 0
