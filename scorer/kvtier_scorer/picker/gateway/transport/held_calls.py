"""Keeps the streams of a connection that resets its calls: one that has none left costs the picker nothing.

Only the C core sees what such a client sends further, and refuses it (REFUSED_STREAM). A connection that was
closed at once would be opened anew, with streams to reset as before.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

HOLD_S: Final = 10.0
"""From the first call that is held until the connection is looked at again."""
CALLS: Final = 4_096
"""Held at a time, of all connections, some 25 KiB each; further ones are not held."""


class HeldCalls:
    """Who is held.

    Args:
        ended: Told of each connection that has been held for HOLD_S.
    """

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._held: dict[str, asyncio.Event] = {}
        self._calls = 0

    @property
    def is_full(self) -> bool:
        """Whether no further call can be held."""
        return self._calls >= CALLS

    async def hold(self, peer: str) -> None:
        """Do not return, also when cancelled, before the calls of a connection are released.

        Args:
            peer: The connection, by the client's address and port.
        """
        held = self._held.get(peer)
        if held is None:
            held = self._held[peer] = asyncio.Event()
            asyncio.get_running_loop().call_later(HOLD_S, self._release, peer, held)
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
            self._ended(peer)
