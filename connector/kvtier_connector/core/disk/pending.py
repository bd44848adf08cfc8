"""Orders under way, as the owner of the index sees them: what becomes of each, and whose its memory is."""

from collections.abc import Sequence

import numpy as np

from kvtier_connector.core.disk.report import Progress
from kvtier_connector.core.disk.transfers.messages import Ended, Order
from kvtier_connector.core.index.keytable import Slots


class PendingOrders:
    """Loads and stores, each with whether it is lost: taken for failed, while its memory is still in use.

    Attributes:
        loads: for which somebody waits.
        stores: likewise.
    """

    def __init__(self) -> None:
        self.loads = dict[Order, bool]()
        self.stores = dict[Order, bool]()
        self._orphans = set[Order]()

    def end(self, ended: Ended, progress: Progress, generation: int, *, is_current: bool) -> None:
        """Take note of an order that has ended.

        Args:
            ended: the order, and how.
            progress: is told what that means.
            generation: of what the tier holds.
            is_current: whether the order is for what the disk holds now.
        """
        order = ended.order
        if order in self._orphans:
            self._orphans.remove(order)
            if all(other.memory_slot != order.memory_slot for other in self._orphans):
                progress.orphans.append(order.memory_slot)
        elif order.write:
            is_lost = self.stores.pop(order)
            progress.released.append(order.key)
            if ended.error is None and is_current and not is_lost:
                progress.stored.append(order.key)
        else:
            is_lost = self.loads.pop(order)
            if ended.error is None and not is_lost and order.generation == generation:
                progress.loaded.append(order.key)
            else:
                progress.ended.append(order.key)
                if not is_lost:
                    progress.lost.append(order.key)

    def lose(self, orders: Sequence[Order], progress: Progress) -> None:
        """Take orders for failed; they still use their memory."""
        for order in orders:
            if order in self.loads:
                if not self.loads[order]:
                    progress.lost.append(order.key)
                self.loads[order] = True
            elif order in self.stores:
                self.stores[order] = True

    def forget(self) -> Slots:
        """Forget for whom the orders are; returns the memory slots that they still use."""
        self._orphans |= self.loads.keys() | self.stores.keys()
        self.loads.clear()
        self.stores.clear()
        return np.array(sorted({order.memory_slot for order in self._orphans}), np.int32)
