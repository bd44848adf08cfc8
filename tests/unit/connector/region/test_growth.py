"""A slice that grows beside the engine: all of it, or as much as can be had, and what is said of that."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core.region import growth, pages, pin, region
from kvtier_connector.core.region.growth import Grown, Growth, GrowthWords, together
from kvtier_connector.core.region.pace import Pace, Steps
from kvtier_connector.core.region.pages import pieces_of
from kvtier_connector.errors import ConnectorError

SLOTS = 8
MakePinning = Callable[[region.Slice], pin.Pinning]


@pytest.fixture(autouse=True)
def first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece is there at once; a slice as small as these would be there whole."""
    monkeypatch.setattr(growth, "_FIRST_BYTES", 0)


class Scene:
    """A slice of eight slots of 1 MiB, in pieces of two."""

    def __init__(
        self,
        make_pinning: Callable[[region.Slice], pin.Pinning],
        policy: Policy = Policy.NEVER,
        *,
        slots: int = SLOTS,
        piece_bytes: int = 2 * MIB,
        pace: Pace | None = None,
    ) -> None:
        request = region.RegionRequest(1, slots * MIB, True, policy, 2 * MIB, grows=True)  # noqa: FBT003
        handle, descriptor = region.create(request)
        self.memory = region.map_slice(handle, 0)
        os.close(descriptor)
        self.words, _ = GrowthWords.create()
        self.said: list[tuple[str, bool]] = []
        self.growth = Growth(
            self.memory,
            tuple(pieces_of(slots, MIB, most_bytes=piece_bytes)),
            page_bytes=2 * MIB if policy is Policy.REQUIRE else pages.SMALL_PAGE_BYTES,
            pinning=make_pinning(self.memory),
            pace=pace or Pace(Steps()),
            words=self.words,
            say=lambda line, is_short: self.said.append((line, is_short)),
        )

    def grown(self) -> Grown:
        self.growth.start()
        self.growth.join()
        return self.words.read()

    def resident_bytes(self) -> int:
        return pages_there(self.memory.address, self.memory.size_bytes)


def pages_there(address: int, size_bytes: int) -> int:
    """Bytes of a range that are backed, by the kernel's own page map."""
    page = pages.SMALL_PAGE_BYTES
    with Path("/proc/self/pagemap").open("rb") as table:
        table.seek(address // page * 8)
        entries = table.read(size_bytes // page * 8)
    return sum(entries[place + 7] >> 7 for place in range(0, len(entries), 8)) * page


def by_driver(refuse_after: int) -> MakePinning:
    calls: list[int] = []

    def register(address: int, _size_bytes: int) -> str | None:
        calls.append(address)
        return "out of memory" if len(calls) > refuse_after else None

    return lambda _memory: pin.by_driver(Policy.PREFER, register)


def test_nothing_is_taken_before_it_begins_and_all_of_it_is_in_the_end() -> None:
    scene = Scene(by_driver(99))
    assert scene.resident_bytes() == 0
    assert scene.words.read() == Grown(0, 0, is_over=False)
    assert scene.grown() == Grown(SLOTS, SLOTS * MIB, is_over=True)
    assert scene.resident_bytes() == SLOTS * MIB
    ((line, is_short),) = scene.said
    assert "; locked (page-locked for DMA); all there after " in line
    assert not is_short


def test_no_call_takes_or_locks_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else changes this process's memory waits for it, and the thread has to wait for a core."""
    taken, locked = list[int](), list[int]()
    real = pages.populate_part

    def take(address: int, size_bytes: int) -> None:
        taken.append(size_bytes)
        real(address, size_bytes)

    class Libc:
        def mlock(self, _address: object, size: ctypes.c_size_t) -> int:
            locked.append(size.value)
            return 0

    monkeypatch.setattr(pages, "populate_part", take)
    monkeypatch.setattr(pin, "_LIBC", Libc())
    slots, piece_bytes = 16, 8 * MIB
    scene = Scene(lambda memory: pin.by_kernel(memory, Policy.PREFER), slots=slots, piece_bytes=piece_bytes)
    scene.grown()
    assert (sum(taken), max(taken)) == (slots * MIB, 2 * MIB)
    assert (sum(locked), max(locked)) == (slots * MIB, 2 * MIB)


class Shares(Pace):
    """Writes down what a growth asks for, and lets it go on."""

    def __init__(self) -> None:
        super().__init__(Steps())
        self.asked: list[tuple[float, bool]] = []

    def rest(self, worked_s: float, share: float, *, least_s: float = 0.0) -> bool:
        del worked_s
        self.asked.append((share, least_s > 0))
        return True


@pytest.mark.parametrize(
    ("make_pinning", "taking", "locking"),
    [
        (by_driver(99), (0.1, False), (0.02, True)),
        (lambda memory: pin.by_kernel(memory, Policy.NEVER), (0.02, False), (0.02, False)),
    ],
    ids=["driver", "kernel"],
)
def test_it_rests_after_each_call(
    make_pinning: MakePinning, taking: tuple[float, bool], locking: tuple[float, bool]
) -> None:
    """A GPU's steps leave a core to take pages on; who waits for a driver has a turn at rest, too."""
    pace = Shares()
    scene = Scene(make_pinning, slots=10, piece_bytes=4 * MIB, pace=pace)
    assert scene.grown().slots == 10
    assert pace.asked == [taking, taking, locking, taking, locking]  # the first piece is there at once


def test_a_driver_that_refuses_ends_the_growth_with_what_was_page_locked() -> None:
    scene = Scene(by_driver(2))
    assert scene.grown() == Grown(4, 4 * MIB, is_over=True)
    ((line, is_short),) = scene.said
    assert "4.0 MiB of 8.0 MiB locked (asked Prefer: registering 2.0 MiB for DMA: out of memory)" in line
    assert "stays at 4.0 MiB of 8.0 MiB: registering 2.0 MiB for DMA: out of memory; lower cpu_cap" in line
    assert is_short


def test_a_driver_that_refuses_the_first_piece_leaves_the_engine_without_a_tier() -> None:
    scene = Scene(by_driver(0))
    assert scene.grown() == Grown(0, 0, is_over=True)
    ((line, _),) = scene.said
    assert "not locked (asked Prefer: registering 2.0 MiB for DMA: out of memory)" in line


def test_a_kernel_that_does_not_lock_all_of_it_bounds_nothing_else() -> None:
    calls: list[int] = []

    def by_kernel(memory: region.Slice) -> pin.Pinning:
        def mlock(address: int, _size_bytes: int) -> str | None:
            calls.append(address - memory.address)
            return "limit reached" if len(calls) > 1 else None

        return pin.Pinning(Policy.PREFER, "mlock", call=mlock)

    scene = Scene(by_kernel)
    assert scene.grown() == Grown(SLOTS, 2 * MIB, is_over=True)
    assert calls == [0, 2 * MIB]
    assert "2.0 MiB of 8.0 MiB locked (asked Prefer: limit reached); all there" in scene.said[0][0]


def test_off_takes_the_memory_and_locks_none() -> None:
    scene = Scene(lambda memory: pin.by_kernel(memory, Policy.NEVER))
    assert scene.grown() == Grown(SLOTS, 0, is_over=True)
    assert "; not locked (memlock: Never); all there" in scene.said[0][0]


def test_memory_that_the_kernel_refuses_ends_the_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    real, taken = pages.populate_part, 0

    def take(address: int, size_bytes: int) -> None:
        nonlocal taken
        if taken >= 4 * MIB:
            raise OSError(12, "Cannot allocate memory")
        taken += size_bytes
        real(address, size_bytes)

    monkeypatch.setattr(pages, "populate_part", take)
    scene = Scene(by_driver(99))
    assert scene.grown() == Grown(4, 4 * MIB, is_over=True)
    line, is_short = scene.said[0]
    assert "stays at 4.0 MiB of 8.0 MiB: Cannot allocate memory; lower cpu_capacity_bytes" in line
    assert is_short


def test_hugepages_are_reserved_at_once_and_taken_as_it_grows(hugepage_pool: Callable[[int], None]) -> None:
    hugepage_pool(4)
    scene = Scene(by_driver(99), Policy.REQUIRE)
    assert pages.free_pages(2 * MIB) == 0  # nobody else gets them
    assert scene.grown() == Grown(SLOTS, SLOTS * MIB, is_over=True)


@pytest.mark.parametrize(("first_bytes", "slots"), [(0, 2), (5 * MIB, 4), (9 * MIB, SLOTS)])
def test_when_the_engine_ends_there_is_no_more_than_was_to_be_there_at_once(
    monkeypatch: pytest.MonkeyPatch, first_bytes: int, slots: int
) -> None:
    monkeypatch.setattr(growth, "_FIRST_BYTES", first_bytes)
    scene = Scene(by_driver(99))
    scene.growth.stop()  # before it has begun
    scene.growth.start()
    scene.growth.join()
    is_over = slots == SLOTS
    assert scene.words.read() == Grown(slots, slots * MIB, is_over=is_over)
    assert len(scene.said) == is_over


def test_a_slot_is_there_when_all_ranks_have_it() -> None:
    first, path = GrowthWords.create()
    second, _ = GrowthWords.create()
    first.tell(Grown(6, 6 * MIB, is_over=True))
    second.tell(Grown(4, 4 * MIB, is_over=False))
    elsewhere = GrowthWords.attach(path)
    assert elsewhere.read() == Grown(6, 6 * MIB, is_over=True)
    assert together([elsewhere, second], slices=2) == Grown(4, 10 * MIB, is_over=False)
    # ranks that hold the same bytes use the same slice
    assert together([elsewhere, second], slices=1) == Grown(4, 5 * MIB, is_over=False)
    with pytest.raises(ConnectorError, match="/proc/self/fd/none: No such file"):
        GrowthWords.attach("/proc/self/fd/none")


def test_a_kernel_that_does_not_say_what_it_gave_ends_neither_the_growth_nor_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pin, "range_state", unreadable)
    monkeypatch.setattr(region, "range_state", unreadable)
    scene = Scene(lambda memory: pin.by_kernel(memory, Policy.PREFER))
    grown = scene.grown()
    assert (grown.slots, grown.is_over) == (SLOTS, True)
    assert len(scene.said) == 1
