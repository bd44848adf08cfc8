"""Promotions between real indexes and a disk that is told when: what the scheduler would do, step by step."""

from collections.abc import Mapping, Sequence

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import BreakEven
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.vllm.behind.promotions import PendingRead, Promotions, Source

KEY_BYTES = 36
TICKET = 7
ENDS = 512, 4096
ABSENT, PENDING, READY, BAD = BlockState


def key_of(number: int) -> bytes:
    return number.to_bytes(KEY_BYTES, "big")


class FakeDisk:
    """Holds blocks, and reads those that it is asked for when the test says so."""

    tier = Tier.DISK
    reads_in_parts = True
    asking = 0

    def __init__(self, numbers: Sequence[int]) -> None:
        self.break_even = BreakEven()
        self.held = {key_of(number) for number in numbers}
        self.asked = list[bytes]()
        self.slots = dict[bytes, int]()

    def presence(self, key: bytes) -> Presence:
        return Presence.PRESENT if key in self.held else Presence.ABSENT

    def load(self, keys: Sequence[bytes], memory_slots: Slots, part_ends: tuple[int, ...] = ()) -> int:
        if not self.held.issuperset(keys):
            raise KeyError("it does not hold one of them")
        assert not set(keys) & self.slots.keys(), "a block is read twice at a time"
        self.asked += keys
        self.slots.update(zip(keys, memory_slots.tolist(), strict=True))
        return TICKET if part_ends else 0


class FakeDecision:
    """Says of blocks what the test says; where a block ends is its number."""

    def __init__(self) -> None:
        self.never, self.too_few = False, 0

    def may_pay(self, end_tokens: int) -> bool:
        del end_tokens
        return not self.never

    def decide(self, end_tokens: Sequence[int]) -> bool:
        return len(end_tokens) >= self.too_few


class Scene:
    """Two tiers and requests, as the scheduler has them."""

    def __init__(
        self, memory_blocks: int, on_disk: Sequence[int], hints: Mapping[str, BlockHint] | None = None
    ) -> None:
        self.memory = BlockIndex(memory_blocks, KEY_BYTES)
        self.disk = FakeDisk(on_disk)
        self.decision = FakeDecision()
        self.promotions = Promotions(
            self.memory,
            [Source(self.disk, self.decision)],  # type: ignore[arg-type] # stand-ins
            (hints or {}).get,
        )

    def look_up(self, request: str, *numbers: int) -> list[BlockState]:
        """Look up a prompt's blocks from its root, as far as they are found."""
        found = list[BlockState]()
        for number in numbers:
            found.append(self.promotions.lookup(key_of(number), request, number))
            if found[-1] not in {READY, PENDING}:
                break
        return found

    def begin(self, part_ends: tuple[int, ...] = ()) -> list[int]:
        """Begin what was asked for; returns which blocks are asked of the disk now."""
        before = len(self.disk.asked)
        self.promotions.begin(part_ends)
        return numbers(self.disk.asked[before:])

    def arrive(self, *blocks: int) -> list[int]:
        return self._settle(Progress(loaded=self._gone(blocks)))

    def fail(self, *blocks: int, ended: bool = True) -> list[int]:
        keys = [key_of(block) for block in blocks]
        self.disk.held.difference_update(keys)
        return self._settle(Progress(lost=keys, ended=self._gone(blocks) if ended else []))

    def end_late(self, *blocks: int) -> list[int]:
        return self._settle(Progress(ended=self._gone(blocks)))

    def put_in_memory(self, *blocks: int) -> None:
        keys = [key_of(block) for block in blocks]
        reservation = self.memory.reserve(keys)
        assert reservation.keys == keys
        self.memory.commit(keys)

    def look_ahead(self, request: str, *numbers: int) -> list[BlockState]:
        self.promotions.ahead = request
        try:
            return self.look_up(request, *numbers)
        finally:
            self.promotions.ahead = ""

    def lend(self, request: str, *blocks: int) -> list[int]:
        """Begin a load ahead of the disk; returns which of its blocks are not in memory yet."""
        keys = [key_of(block) for block in blocks]
        coming = self.promotions.lend(keys, request)
        assert all(coming[key] == PendingRead(self.disk.slots[key], TICKET, Tier.DISK) for key in coming)
        self.memory.pin([key for key in keys if key not in coming])
        self.promotions.unpin(request)
        return numbers(list(coming))

    def end_load(self, request: str, *blocks: int) -> None:
        lent = self.promotions.complete_load(request)
        self.memory.unpin([key for key in map(key_of, blocks) if key not in lent])

    def load(self, request: str, *blocks: int) -> None:
        """Load blocks to the device: they protect themselves, then they are let go of."""
        keys = [key_of(block) for block in blocks]
        self.memory.pin(keys)
        self.promotions.unpin(request)
        self.memory.unpin(keys)

    def finish(self, *requests: str) -> None:
        for request in requests:
            self.promotions.on_request_finished(request)

    def assert_nothing_is_kept(self) -> None:
        assert self.memory.reservable == self.memory.capacity
        assert not self.promotions._held
        assert not self.promotions._readers
        assert not self.promotions._lookups

    def _gone(self, blocks: Sequence[int]) -> list[bytes]:
        keys = [key_of(block) for block in blocks]
        for key in keys:
            del self.disk.slots[key]
        return keys

    def _settle(self, progress: Progress) -> list[int]:
        return numbers(self.promotions.apply(progress, Tier.DISK))


def numbers(keys: Sequence[bytes]) -> list[int]:
    return [int.from_bytes(key, "big") for key in keys]
