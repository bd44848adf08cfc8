"""Breaks bytes a little, the same way for the same random numbers."""

from collections.abc import Sequence
from random import Random
from typing import Final

_INTERESTING: Final = (
    b"",
    b"\x00",
    b"\xff",
    b"\xff" * 9,
    b"{",
    b"[" * 300 + b"]" * 300,
    b'"',
    b"\\ud800",
    b"null",
    b"-1",
    b"1e999",
)
_MOST_CHANGES: Final = 4


def seeded_random(seed: int) -> Random:
    """Random numbers that are the same in every run."""
    return Random(seed)  # noqa: S311 - not a secret


def mutate(random: Random, samples: Sequence[bytes]) -> bytes:
    """One of the samples with up to four changes: bits, bytes, cuts, repeats, and parts of another sample."""
    data = bytearray(random.choice(samples))
    for _ in range(random.randint(1, _MOST_CHANGES)):
        _change(random, data, samples)
    return bytes(data)


def _change(random: Random, data: bytearray, samples: Sequence[bytes]) -> None:
    at = random.randint(0, len(data))
    to = min(len(data), at + random.choice((1, 2, 8, 100)))
    match random.randrange(6):
        case 0 if at < len(data):
            data[at] ^= 1 << random.randrange(8)
        case 1:
            del data[at:to]
        case 2:
            data[at:to] = random.choice(_INTERESTING)
        case 3:
            data[at:at] = bytes(data[at:to])
        case 4:
            other = random.choice(samples)
            start = random.randint(0, len(other))
            data[at:to] = other[start : start + random.randint(0, 40)]
        case _:
            data[at:to] = random.randbytes(to - at)
