"""Kernels of one holder's hash table: find, add and remove an entry, take and return pages.

Linear hashing (W. Litwin, "Linear hashing: a new tool for file and table addressing", VLDB 1980): each slot
that the holder adds brings one bucket with it and splits one, so the table grows for ever without a rehash.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_part
from kvtier_scorer.index.layout import (
    ALL_PAGES,
    DIRECTORY,
    ENTRIES,
    FREE,
    FREE_PAGE,
    FRESH_PAGE,
    GHOSTS,
    HEAD,
    KEY,
    MASK,
    NEWEST,
    NEXT,
    NONE,
    OLDEST,
    PAGE_BITS,
    PAGE_SLOTS,
    PAGES,
    SALT,
    SLOT_KEYS,
    SLOT_WORDS,
    SLOTS,
    USED_PAGES,
    IndexArrays,
)


@compiled_part
def slot_at(memory: IndexArrays, holder: int, number: int) -> int:
    """Where the holder's slot of that number is in the whole memory."""
    page: int = memory.directory[memory.holders[holder, DIRECTORY] + (number >> PAGE_BITS)]
    return (page << PAGE_BITS) | (number & (PAGE_SLOTS - 1))


@compiled_part
def link(memory: IndexArrays, word: int) -> int:
    """Where the link in that word leads, 64 bits wide as all places are; numba would keep to 32."""
    return int(np.int64(memory.words[word]))


@compiled_part
def spread(memory: IndexArrays, key: np.uint64) -> int:
    """A key's 32 bits from which its bucket is taken."""
    return int(np.int64((key * np.uint64(memory.pool[SALT])) >> np.uint64(32)))


@compiled_part
def bucket(memory: IndexArrays, holder: int, key: np.uint64) -> int:
    """The slot that has the head of the key's bucket. The holder has at least one slot."""
    bits = spread(memory, key)
    mask = memory.holders[holder, MASK]
    not_split_yet = (bits & mask) >= memory.holders[holder, SLOTS]
    return slot_at(memory, holder, bits & (mask >> not_split_yet))


@compiled_part
def find(memory: IndexArrays, holder: int, key: np.uint64) -> int:
    """The slot of the entry with that key, or NONE."""
    if memory.holders[holder, SLOTS] == 0:
        return NONE
    entry = link(memory, bucket(memory, holder, key) * SLOT_WORDS + HEAD)
    while entry != NONE and memory.keys[entry * SLOT_KEYS + KEY] != key:
        entry = link(memory, entry * SLOT_WORDS + NEXT)
    return entry


@compiled_part
def find_all(
    memory: IndexArrays,
    holders: NDArray[np.int64],
    keys: NDArray[np.uint64],
    entries: NDArray[np.int64],
    work: NDArray[np.int64],
) -> None:
    """Find each key in the holder of the same place, which has at least one slot.

    Nothing in the loops branches on what was just read, so the CPU reads for many keys at once; one after the
    other each would wait for memory twice or more. That is why choices are multiplied with: what LLVM makes a
    branch is guessed wrong half of the time. `work` is room for as many numbers as there are keys.
    """
    for i in range(len(entries)):
        entries[i] = memory.words[bucket(memory, holders[i], keys[i]) * SLOT_WORDS + HEAD]
        work[i] = i
    left = len(entries)
    while left:
        on = 0
        for j in range(left):
            i = work[j]
            entry = entries[i]
            there = int(entry != NONE)
            place = entry * there
            other = there & int(memory.keys[place * SLOT_KEYS + KEY] != keys[i])
            entries[i] += (link(memory, place * SLOT_WORDS + NEXT) - entry) * other
            work[on] = i
            on += other
        left = on


@compiled_part
def add(memory: IndexArrays, holder: int, key: np.uint64) -> int:
    """Make an entry for a key that has none; its links are the caller's to set. NONE: no slot is left."""
    slot = _take_slot(memory, holder)
    if slot == NONE:
        return NONE
    head = bucket(memory, holder, key) * SLOT_WORDS + HEAD
    memory.words[slot * SLOT_WORDS + NEXT] = memory.words[head]
    memory.words[head] = slot
    memory.keys[slot * SLOT_KEYS + KEY] = key
    memory.holders[holder, ENTRIES] += 1
    return slot


@compiled_part
def remove(memory: IndexArrays, holder: int, entry: int) -> None:
    """Remove an entry; its links are the caller's to mend."""
    word = bucket(memory, holder, memory.keys[entry * SLOT_KEYS + KEY]) * SLOT_WORDS + HEAD
    while memory.words[word] != entry:
        word = link(memory, word) * SLOT_WORDS + NEXT
    memory.words[word] = memory.words[entry * SLOT_WORDS + NEXT]
    memory.words[entry * SLOT_WORDS + NEXT] = memory.holders[holder, FREE]
    memory.holders[holder, FREE] = entry
    memory.holders[holder, ENTRIES] -= 1


@compiled
def clear(memory: IndexArrays, holder: int) -> None:
    """Forget everything and give the pages back. What they still contain is never read again."""
    pages = (memory.holders[holder, SLOTS] + PAGE_SLOTS - 1) >> PAGE_BITS
    for i in range(pages):
        page = memory.directory[memory.holders[holder, DIRECTORY] + i]
        memory.words[(page << PAGE_BITS) * SLOT_WORDS] = memory.pool[FREE_PAGE]
        memory.pool[FREE_PAGE] = page
    memory.pool[USED_PAGES] -= pages
    for field in (SLOTS, MASK, ENTRIES, GHOSTS):
        memory.holders[holder, field] = 0
    for field in (FREE, NEWEST, OLDEST):
        memory.holders[holder, field] = NONE


@compiled_part
def _take_slot(memory: IndexArrays, holder: int) -> int:
    free: int = memory.holders[holder, FREE]
    if free != NONE:
        memory.holders[holder, FREE] = memory.words[free * SLOT_WORDS + NEXT]
        return free
    number = memory.holders[holder, SLOTS]
    if number & (PAGE_SLOTS - 1) == 0:
        place = number >> PAGE_BITS
        if place >= memory.holders[holder, PAGES]:
            return NONE
        page = _take_page(memory)
        if page == NONE:
            return NONE
        memory.directory[memory.holders[holder, DIRECTORY] + place] = page
    slot = slot_at(memory, holder, number)
    memory.words[slot * SLOT_WORDS + HEAD] = NONE
    memory.holders[holder, SLOTS] = number + 1
    if number > memory.holders[holder, MASK]:
        memory.holders[holder, MASK] = 2 * memory.holders[holder, MASK] + 1
    if number > 0:
        _split(memory, holder, number, slot)
    return slot


@compiled_part
def _split(memory: IndexArrays, holder: int, number: int, slot: int) -> None:
    """Move what belongs to the new bucket `number` there from the only bucket where it can be."""
    mask = memory.holders[holder, MASK]
    word = slot_at(memory, holder, number & (mask >> 1)) * SLOT_WORDS + HEAD
    while memory.words[word] != NONE:
        entry = link(memory, word)
        after = entry * SLOT_WORDS + NEXT
        if spread(memory, memory.keys[entry * SLOT_KEYS + KEY]) & mask == number:
            memory.words[word] = memory.words[after]
            memory.words[after] = memory.words[slot * SLOT_WORDS + HEAD]
            memory.words[slot * SLOT_WORDS + HEAD] = entry
        else:
            word = after


@compiled_part
def _take_page(memory: IndexArrays) -> int:
    page: int = memory.pool[FREE_PAGE]
    if page != NONE:
        memory.pool[FREE_PAGE] = memory.words[(page << PAGE_BITS) * SLOT_WORDS]
    elif memory.pool[FRESH_PAGE] < memory.pool[ALL_PAGES]:
        page = memory.pool[FRESH_PAGE]
        memory.pool[FRESH_PAGE] = page + 1
    else:
        return NONE
    memory.pool[USED_PAGES] += 1
    return page
