"""Memory without a name, on pages of a given size."""

import os
from typing import Final

_SIZE_SHIFT: Final = 26
"""MFD_HUGE_SHIFT of linux/memfd.h: log2 of the page size goes into the flags from this bit."""


def memfd(page_bytes: int | None = None) -> int:
    """A descriptor, which the caller closes.

    Args:
        page_bytes: Size of huge pages; None for ordinary ones.

    Raises:
        OSError: The kernel has no pages of that size.
    """
    huge = os.MFD_HUGETLB | (page_bytes.bit_length() - 1) << _SIZE_SHIFT if page_bytes else 0
    return os.memfd_create("kvtier-doctor", os.MFD_CLOEXEC | huge)
