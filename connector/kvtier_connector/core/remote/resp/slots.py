"""Which of several servers has a key (Redis cluster specification, "Key distribution model")."""

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_connector.core.remote.resp.connection import Reply
from kvtier_connector.core.remote.urls import MOST_PORTS, Address
from kvtier_connector.errors import RemoteError

SLOTS: Final = 16384
_LONGEST_HOST: Final = 253  # RFC 1035, without the root's dot


@dataclass(frozen=True, slots=True)
class SlotMap:
    """Servers, of a cluster its primaries, and for each slot which of them has it, or -1 for none."""

    primaries: tuple[Address, ...]
    owners: tuple[int, ...]


def slot_of(key: bytes) -> int:
    """Return a key's slot; of a key with something in braces, that alone counts."""
    _, opened, behind = key.partition(b"{")
    tag, closed, _ = behind.partition(b"}")
    return binascii.crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


def slot_map(asked: Address, reply: Reply) -> SlotMap:
    """Read what CLUSTER SLOTS says to a client of `asked`. Raises RemoteError: it is something else."""
    owners = [-1] * SLOTS
    places: dict[Address, int] = {}
    match reply:
        case list(ranges):
            for some in ranges:
                match some:
                    case [int(first), int(last), [host, int(port), *_], *_] if (
                        0 <= first <= last < SLOTS and 0 < port <= MOST_PORTS
                    ):
                        primary = Address(_host(asked, host), port)
                        place = places.setdefault(primary, len(places))
                        owners[first : last + 1] = [place] * (last + 1 - first)
                    case _:
                        raise _unknown(asked)
        case _:
            raise _unknown(asked)
    return SlotMap(tuple(places), tuple(owners))


def by_owner(slots: SlotMap, keys: Sequence[bytes]) -> Mapping[int, list[int]]:
    """Return for each primary of some keys, or -1, which of the keys it has, by their place."""
    shares: dict[int, list[int]] = {}
    for place, key in enumerate(keys):
        shares.setdefault(slots.owners[slot_of(key)], []).append(place)
    return shares


def _host(asked: Address, said: Reply) -> str:
    """A server that does not know its own name says nothing, or a question mark."""
    host = said.decode("ascii", "replace") if isinstance(said, bytes) else ""
    if len(host) > _LONGEST_HOST or not host.isprintable():
        raise _unknown(asked)
    return asked.host if host in {"", "?"} else host


def _unknown(asked: Address) -> RemoteError:
    return RemoteError(f"{asked}: its answer to CLUSTER SLOTS is none that is known")
