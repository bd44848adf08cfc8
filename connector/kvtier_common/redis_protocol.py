"""What connector, planner and API hold of servers of the Redis protocol: URLs and allocation."""

from collections.abc import Mapping
from typing import Final

SCHEMES: Final[Mapping[str, bool]] = {"redis": False, "rediss": True, "valkey": False, "valkeys": True}
"""Of their URLs, and whether TLS is spoken."""
PORT: Final = 6379
"""Where a URL has none."""
SHARE_PATTERN: Final = "^[a-z0-9]([a-z0-9./-]*[a-z0-9])?$"
"""Of the name that keys begin with: printable, and none of the characters that mean something in a pattern of
Redis' ACL."""

_SIZES_A_DOUBLING: Final = 4
"""jemalloc rounds up to one of so many sizes between two powers of two (jemalloc(3), size classes): a value
of exactly 4 MiB, to which a server adds its header, takes 5."""


def size_class_below(size_bytes: int) -> int:
    """The largest size that is allocated as it is, up to this one of 1 byte or more."""
    step_bytes = _step_bytes(size_bytes)
    return size_bytes // step_bytes * step_bytes


def size_class_above(size_bytes: int) -> int:
    """What is allocated for so many bytes, 1 or more."""
    step_bytes = _step_bytes(size_bytes)
    return -(-size_bytes // step_bytes) * step_bytes


def _step_bytes(size_bytes: int) -> int:
    """Between the sizes from the power of two below to the next."""
    return max(1, (1 << (size_bytes.bit_length() - 1)) // _SIZES_A_DOUBLING)
