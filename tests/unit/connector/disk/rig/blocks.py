"""Blocks of a tier under test: numbers say what is in them, and a capacity how many there are."""

import random
from pathlib import Path

from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.core.disk.files.store import StoreRequest

BLOCK = 4096
KEY_BYTES = 36
MEANING = fingerprint({"model": "tiny"})
SPARE_BYTES = 1 << 20


def key_of(number: int) -> bytes:
    return number.to_bytes(KEY_BYTES, "big")


def number_of(key: bytes) -> int:
    return int.from_bytes(key, "big")


def content_of(number: int, epoch: int = 0) -> bytes:
    """A block's bytes: they follow from its number, and from the weights that computed them."""
    return random.Random(number << 16 | epoch).randbytes(BLOCK)  # noqa: S311 - to be the same again


def capacity_for(slots: int) -> int:
    """The smallest capacity that gives so many slots."""
    low, high = 0, SPARE_BYTES + slots * 2 * BLOCK + (8 << 20)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            enough = request_for(Path(), middle).shape.slots >= slots
        except Exception:  # noqa: BLE001 - too little for one
            enough = False
        low, high = (low, middle) if enough else (middle, high)
    return high


def request_for(
    path: Path, capacity_bytes: int, *, meaning: Fingerprint = MEANING, direct: bool = False
) -> StoreRequest:
    return StoreRequest(path, capacity_bytes, BLOCK, KEY_BYTES, meaning, direct, "an engine under test")
