"""Calls that a client resets before they are answered: many of them at once are rapid reset (CVE-2023-44487).

Their streams cost a client nothing and the picker a call each. The rule is Envoy's
(overload.premature_reset_total_stream_count), with a lower number: a call costs more here. Calls of such a
connection are held: one that has no stream left costs the picker nothing, for only the C core sees what its
client sends further, and refuses it (REFUSED_STREAM). Closed at once, it would be opened anew.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

CALLS: Final = 20
"""Of one connection, before it can be suspect; Envoy has 500. Half are enough where all are resets."""
BRIEF_S: Final = 1.0  # a call that has been open for longer is one that its client gave up: Envoy's time, too
_SHARE: Final = 2
_PEERS: Final = 4096  # more connections than there may be at a time


class PrematureResets:
    """Counts the calls of each connection, and those of them that were reset; keeps the latest."""

    def __init__(self, most_peers: int = _PEERS) -> None:
        self._most_peers = most_peers
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_suspect(self, peer: str) -> bool:
        """Whether a client, by its address and port, reset half of its calls, and of CALLS at least."""
        calls, resets = self._counts.get(peer, (0, 0))
        return resets * _SHARE >= max(calls, CALLS)

    def count_call(self, peer: str, *, premature: bool) -> None:
        """Count a call that has ended; `premature`: its client reset it before it was answered, and soon."""
        calls, resets = self._counts.pop(peer, (0, 0))
        self._counts[peer] = calls + 1, resets + premature
        if len(self._counts) > self._most_peers:
            self._counts.popitem(last=False)

    def forget(self, peer: str) -> None:
        """Its port may be another client's next."""
        self._counts.pop(peer, None)


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """How long calls are held, from the first on until the connection is looked at again, and how many.

    Of all connections together: some 25 KiB each; further ones are not held.
    """

    hold_s: float = 10.0
    calls: int = 4_096


class HeldCalls:
    """The calls that are held, by connection; `on_released` gets each once it was held long enough."""

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
        """Do not return, also when cancelled, before the calls of a connection (`ip:port`) are released."""
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
