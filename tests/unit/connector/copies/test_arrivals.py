"""What a worker is told of what has come from disk: once, and never of an earlier read."""

import mmap
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from kvtier_connector.core.copies import arrivals
from kvtier_connector.core.copies.arrivals import DOUBTED, FAILED, ROW_BYTES, WHOLE, Arrivals
from kvtier_connector.errors import ConnectorError, DiskError

SOON_S = 60.0


@pytest.fixture
def words() -> Arrivals:
    return Arrivals(mmap.mmap(-1, 8 * ROW_BYTES))


def waiting(words: Arrivals, tickets: dict[int, int], parts: int) -> tuple[Future[None], Callable[[], None]]:
    """Wait in a thread; the second result returns when it has looked once more."""
    looked = threading.Semaphore(0)
    lock = words._lock

    class Looked:
        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            looked.release()

    words._lock = Looked()  # type: ignore[assignment] # as much of a lock as it needs
    slots, of = np.array(list(tickets), np.int32), np.array(list(tickets.values()))
    pool = ThreadPoolExecutor(1)
    done = pool.submit(words.wait, slots, of, parts, SOON_S)
    pool.shutdown(wait=False)

    def looks() -> None:
        while looked.acquire(blocking=False):
            pass
        for _ in range(2):  # one may have begun before
            assert looked.acquire(timeout=SOON_S)

    return done, looks


def test_a_wait_ends_when_the_last_one_has_come_so_far(words: Arrivals) -> None:
    words.tell(3, 1, WHOLE)  # an earlier read into the same slot
    done, looks = waiting(words, {3: 5, 4: 5, 6: 0}, 1)
    looks()
    words.tell(3, 5, 1)
    looks()
    assert not done.done()
    words.tell(4, 5, WHOLE)
    done.result(SOON_S)


def test_a_part_is_not_the_whole(words: Arrivals) -> None:
    done, looks = waiting(words, {0: 5}, WHOLE)
    for parts in (1, 2, 3):
        words.tell(0, 5, parts)
        looks()
        assert not done.done()
    words.tell(0, 5, WHOLE)
    done.result(SOON_S)


@pytest.mark.parametrize("before", [None, 1])
@pytest.mark.parametrize("parts", [1, WHOLE])
def test_a_failure_ends_the_wait(words: Arrivals, before: int | None, parts: int) -> None:
    if before is not None:
        words.tell(2, 9, before)
    words.tell(2, 9, FAILED)
    with pytest.raises(DiskError, match=r"^a block could not be read from disk$"):
        words.wait(np.array([1, 2]), np.array([8, 9]), parts, SOON_S)


def test_a_slot_that_is_somebody_elses_meanwhile_has_failed(words: Arrivals) -> None:
    words.tell(2, 10, WHOLE)
    with pytest.raises(DiskError, match=r"^a block could not be read from disk$"):
        words.wait(np.array([2]), np.array([9]), 1, SOON_S)


@pytest.mark.parametrize("end", [FAILED, WHOLE])
def test_nothing_counts_after_the_end(words: Arrivals, end: int) -> None:
    words.tell(2, 9, end)
    for later in (FAILED, 1, 2, DOUBTED, WHOLE):
        words.tell(2, 9, later)
        assert words.how_far(2, 9) == end


@pytest.mark.parametrize("end", [FAILED, WHOLE])
def test_a_doubt_is_not_the_end(words: Arrivals, end: int) -> None:
    words.tell(0, 5, 3)
    words.tell(0, 5, DOUBTED)
    done, looks = waiting(words, {0: 5}, WHOLE)
    looks()
    assert not done.done()
    words.tell(0, 5, end)
    assert isinstance(done.exception(SOON_S), DiskError if end == FAILED else type(None))


def test_of_another_read_nothing_is_known(words: Arrivals) -> None:
    words.tell(2, 9, 3)
    words.tell(2, 8, WHOLE)  # too late: the slot is not that read's any more
    assert [words.how_far(2, ticket) for ticket in (8, 9, 10)] == [FAILED, 3, FAILED]
    assert words.how_far(3, 9) == FAILED


def test_each_block_has_its_own_checksum(words: Arrivals) -> None:
    most = (1 << 64) - 1
    for slot in range(8):
        words.expect(slot, most - slot, slot)
        words.tell(slot, 9, slot)
    assert [words.seed_and_checksum(slot) for slot in range(8)] == [(most - slot, slot) for slot in range(8)]
    assert [words.how_far(slot, 9) for slot in range(8)] == list(range(8))


def test_a_disk_of_which_nothing_is_heard_is_given_up(words: Arrivals) -> None:
    words.tell(0, 1, WHOLE)
    with pytest.raises(DiskError, match=r"^nothing has come from disk for 0\.01 s$"):
        words.wait(np.array([0, 1]), np.array([1, 1]), WHOLE, 0.01)


def test_two_mappings_are_the_same_rows() -> None:
    path = arrivals.create(4)
    there, here = arrivals.attach(path), arrivals.attach(path)
    there.expect(3, 1, 2)
    there.tell(3, 1, WHOLE)
    here.wait(np.array([3]), np.array([1]), WHOLE, SOON_S)
    assert here.seed_and_checksum(3) == (1, 2)
    with pytest.raises(ConnectorError, match=r"^/proc/1/fd/none: "):
        arrivals.attach("/proc/1/fd/none")
