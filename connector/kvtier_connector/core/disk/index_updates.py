"""What the disk tier's index learns of orders that have ended, many at a time."""

from dataclasses import dataclass, field

import numpy as np

from kvtier_connector.core.disk.transfers.messages import Order
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import DiskError


@dataclass(slots=True)
class IndexUpdates:
    """Orders for what the index holds, which have ended.

    Attributes:
        read: slots that were read.
        written: keys of blocks that were written, or could not be.
        bad: orders whose blocks cannot be used.
    """

    read: list[int] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    bad: list[Order] = field(default_factory=list)

    def add(self, order: Order, error: Exception | None) -> None:
        """Add an order, and why it failed."""
        if order.write:
            self.written.append(order.key)
        else:
            self.read.append(order.slot)
        # A load that the disk was not asked for, or that was taken back, says nothing against the block.
        if error is not None and (order.write or not isinstance(error, DiskError)):
            self.bad.append(order)

    def apply(self, index: BlockIndex) -> Slots:
        """Tell the index; returns the slots that hold nothing any more."""
        if self.bad:
            index.invalidate(list({order.key: None for order in self.bad}))
        index.commit(self.written)
        index.unpin_slots(np.array(self.read, np.int32))
        return np.array([order.slot for order in self.bad], np.int32)
