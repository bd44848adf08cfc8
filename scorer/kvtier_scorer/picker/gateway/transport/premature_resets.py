"""Counts calls that a client resets before they are answered: many of them, at once, are rapid reset.

Their streams cost a client nothing and the picker a call each (CVE-2023-44487). The rule is Envoy's
(overload.premature_reset_total_stream_count), with a lower number: a call costs more here.
"""

from collections import OrderedDict
from typing import Final

CALLS: Final = 20
"""Of one connection, before it can be suspect; Envoy has 500. Half are enough where all are resets."""
BRIEF_S: Final = 1.0
"""A call that has been open for longer is one that its client gave up: Envoy's time, too."""
_SHARE: Final = 2
_PEERS: Final = 4096
"""More connections than there may be at a time."""


class PrematureResets:
    """Counts the calls of each connection, and those of them that were reset.

    Args:
        most_peers: Connections that are remembered, those with the latest calls.
    """

    def __init__(self, most_peers: int = _PEERS) -> None:
        self._most_peers = most_peers
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_suspect(self, peer: str) -> bool:
        """Whether a client, by its address and port, reset half of its calls, and of CALLS at least."""
        calls, resets = self._counts.get(peer, (0, 0))
        return resets * _SHARE >= max(calls, CALLS)

    def count_call(self, peer: str, *, premature: bool) -> None:
        """Count a call that has ended.

        Args:
            peer: Its connection.
            premature: Whether the client reset it before it was answered, and soon.
        """
        calls, resets = self._counts.pop(peer, (0, 0))
        self._counts[peer] = calls + 1, resets + premature
        if len(self._counts) > self._most_peers:
            self._counts.popitem(last=False)

    def forget(self, peer: str) -> None:
        """Its port may be another client's next."""
        self._counts.pop(peer, None)
