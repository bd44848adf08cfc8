"""What the disk's thread is sent and tells, beside what any tier does."""

from dataclasses import dataclass

from kvtier_connector.core.behind import messages
from kvtier_connector.core.behind.messages import Clear, KeepRates, Order, Probe
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.index.keytable import Slots


@dataclass(frozen=True, slots=True)
class Forget:
    """Slots that hold nothing any more."""

    generation: int
    slots: Slots
    is_promised: bool = False  # somebody is told that it is done; answered by NotForgotten where it is not


@dataclass(frozen=True, slots=True)
class NotForgotten:
    """What was to be forgotten may be found again when the disk can be used again."""


@dataclass(frozen=True, slots=True)
class Up:
    """The disk can be used again: its index, filled from what was found, is the owner's from now on."""

    store: Store


Message = Order | Forget | Clear | Probe | KeepRates
Event = messages.Event | Up | NotForgotten
