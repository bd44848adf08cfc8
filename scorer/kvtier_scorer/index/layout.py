"""Where things are in the index's arrays.

A *holder* is one tier of one pod. Its entries lie in slots of 24 bytes, six 32-bit words:

    head | next | key (64 bits) | link a | link b

- `head` begins the chain of one hash bucket; it is the slot's own and has nothing to do with the entry in it.
- `next` is the entry after this one in its bucket, or the next free slot.
- `key` is the chained block hash.
- In an approximate holder the two links are the neighbours in order of use: `newer`, `older`.
- In a precise holder they are the entry of the block before (`parent`) and the number of entries that have
  this one as parent, with the highest bit set in a ghost: see `precise`.

Slots come in pages. A holder takes a page when it needs one, so what is unused costs nothing and growing
copies nothing; its directory says where its pages are. Links are places in the whole memory, 32 bits wide.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD

TIERS: Final = len(OF_A_POD)

SLOT_WORDS: Final = 6
SLOT_BYTES: Final = 4 * SLOT_WORDS
HEAD: Final = 0
NEXT: Final = 1
NEWER: Final = 4
OLDER: Final = 5
PARENT: Final = NEWER
CHILDREN: Final = OLDER
SLOT_KEYS: Final = 3  # 64-bit words in a slot
KEY: Final = 1

NONE: Final = 0xFFFF_FFFF  # no slot. As a parent: not known.
FIRST: Final = 0xFFFF_FFFE  # as a parent: there is none, the block is the first of its prompt
GHOST: Final = 1 << 31  # bit of `CHILDREN`

PAGE_BITS: Final = 12
PAGE_SLOTS: Final = 1 << PAGE_BITS
PAGE_BYTES: Final = PAGE_SLOTS * SLOT_BYTES

# A holder's fields.
SLOTS: Final = 0  # slots in use or free; as many buckets
MASK: Final = 1  # the smallest 2^n - 1 that is not less than `SLOTS - 1`
DIRECTORY: Final = 2  # where its page numbers begin in the directory
PAGES: Final = 3  # room for so many page numbers
ENTRIES: Final = 4  # slots that have an entry, ghosts included
GHOSTS: Final = 5
FREE: Final = 6
NEWEST: Final = 7
OLDEST: Final = 8
CAPACITY: Final = 9
"""Most entries. Exact in an approximate holder, a bound against a runaway pod in a precise one."""
PRECISE: Final = 10
HINT: Final = 11  # the capacity that was asked for
DROPPED: Final = 12  # blocks that a precise holder was told of and had no slot for
HOLDER_FIELDS: Final = 16  # two cache lines, what every look-up reads in the first

# The pool's fields.
FRESH_PAGE: Final = 0  # pages from here on were never used
FREE_PAGE: Final = 1  # first of the pages that were given back; each begins with the number of the next
ALL_PAGES: Final = 2
USED_PAGES: Final = 3
SALT: Final = 4
"""A random odd number that spreads keys over buckets: a client who knows the hashes cannot aim at one."""
POOL_FIELDS: Final = 8


class IndexArrays(NamedTuple):
    """The index's arrays, as kernels get them."""

    words: NDArray[np.uint32]  # all slots as 32-bit words
    keys: NDArray[np.uint64]  # the same memory as 64-bit words
    holders: NDArray[np.int64]  # shape (pods x tiers, HOLDER_FIELDS)
    directory: NDArray[np.int64]  # page numbers of all holders, each holder's together
    pool: NDArray[np.int64]
