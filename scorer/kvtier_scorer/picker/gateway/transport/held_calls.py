"""Keeps the streams of a connection that resets its calls: one that has none left costs the picker nothing.

Only the C core sees what such a client sends further, and refuses it (REFUSED_STREAM). A connection that was
closed at once would be opened anew, with streams to reset as before.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """How long and how many calls are held.

    Attributes:
        hold_s: From the first call that is held until the connection is looked at again.
        calls: Held at a time, of all connections, some 25 KiB each; further ones are not held.
    """

    hold_s: float = 10.0
    calls: int = 4_096


class HeldCalls:
    """The calls that are held, by connection.

    Args:
        limits: How long and how many.
        on_released: Called with each connection whose calls have been held for that long.
    """

    def __init__(self, limits: HoldLimits, on_released: Callable[[str], None]) -> None:
        self._limits = limits
        self._on_released = on_released
        self._held: dict[str, asyncio.Event] = {}
        self._calls = 0

    @property
    def is_full(self) -> bool:
        """Whether no further call can be held."""
        return self._calls >= self._limits.calls

    async def hold(self, peer: str) -> None:
        """Do not return, also when cancelled, before the calls of a connection are released.

        Args:
            peer: The connection, by the client's address and port.
        """
        held = self._held.get(peer)
        if held is None:
            held = self._held[peer] = asyncio.Event()
            asyncio.get_running_loop().call_later(self._limits.hold_s, self._release, peer, held)
        self._calls += 1
        try:
            while not held.is_set():
                with suppress(asyncio.CancelledError):
                    await held.wait()
        finally:
            self._calls -= 1

    def release(self) -> None:
        """Let every call end."""
        for held in self._held.values():
            held.set()

    def _release(self, peer: str, held: asyncio.Event) -> None:
        del self._held[peer]
        if not held.is_set():
            held.set()
            self._on_released(peer)
