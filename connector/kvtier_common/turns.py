"""Long answers and messages take turns: what is held of them at a time is bounded, whoever sends them."""

from asyncio import Semaphore
from dataclasses import dataclass


@dataclass(slots=True)
class LongTurn:
    """The turn that one answer takes once it is long.

    Attributes:
        turns: How many long ones are read at a time; the others wait, and their senders with them.
        long_bytes: Above this it is long.
    """

    turns: Semaphore
    long_bytes: int
    _taken: bool = False

    async def grew_to(self, size_bytes: int) -> bool:
        """Waits for a turn if it is long now; whether it was taken in this call."""
        if self._taken or size_bytes <= self.long_bytes:
            return False
        self._taken = await self.turns.acquire()
        return True

    def give_back(self) -> None:
        """Lets the next one have the turn, if this one has it."""
        if self._taken:
            self._taken = False
            self.turns.release()
