"""Servers that know nothing of each other: which of them has a key is what all clients of them agree on."""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from kvtier_connector.core.remote.resp.slots import SLOTS, SlotMap
from kvtier_connector.core.remote.urls import Address

_SCORES: Final = struct.Struct(f"<{SLOTS}Q")


def shard_map(addresses: Iterable[Address]) -> SlotMap:
    """Share a cluster's slots out among servers by rendezvous: each goes to the server that scores highest.

    It depends on the servers' names alone and not on their order, so all clients have the same. A server more
    takes its part from all others, and what one had that is gone goes to all others: no other slot moves.
    """
    return _shard_map(tuple(sorted(set(addresses), key=str)))


@lru_cache(maxsize=8)
def _shard_map(servers: tuple[Address, ...]) -> SlotMap:
    scores = [_scores(str(server)) for server in servers]
    return SlotMap(servers, tuple(of_all.index(max(of_all)) for of_all in zip(*scores, strict=True)))


def _scores(server: str) -> Sequence[int]:
    """Return a server's number for each slot."""
    # any good hash would do that is the same everywhere, for ever
    return _SCORES.unpack(hashlib.shake_128(server.encode()).digest(_SCORES.size))
