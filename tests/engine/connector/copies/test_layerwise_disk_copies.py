"""Loads part by part on their own: what is copied when, what is checked, and by whom."""

import mmap
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

import numpy as np
import pytest
from tests.unit.connector.disk.rig.faulty_engine import SOON_S

from kvtier_connector.core.copies.arrivals import DOUBTED, FAILED, ROW_BYTES, WHOLE, Arrivals
from kvtier_connector.core.copies.copyplan import Layout, Page
from kvtier_connector.core.copies.layer_parts import layer_parts
from kvtier_connector.core.disk.files.fingerprint import seeded_checksum
from kvtier_connector.errors import DiskError
from kvtier_connector.vllm.copies import layerwise_disk_loads
from kvtier_connector.vllm.copies.copier import CopyResult, MemcpyCopier
from kvtier_connector.vllm.copies.layerwise_disk_loads import LayerwiseDiskLoads

LAYERS: Final = 8
PAGE: Final = 4096
BLOCKS: Final = 12
SLOT: Final = LAYERS * PAGE + PAGE  # a page of padding
TICKET: Final = 7
SEED: Final = (1 << 64) - 3
PARTS: Final = 3
LAST_OF_PART: Final = (0, 2, 7)


@dataclass
class Scene:
    """Blocks of random bytes in a region, a device of zeros, and a load of some blocks to others."""

    slots: list[int]
    blocks: list[int]
    tickets: list[int]
    region: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, BLOCKS * SLOT))
    device: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, LAYERS * BLOCKS * PAGE))

    def __post_init__(self) -> None:
        at_region, at_device = (np.frombuffer(it, np.uint8).ctypes.data for it in (self.region, self.device))
        self.region[:] = np.random.default_rng(0).bytes(len(self.region))
        pages = tuple(Page(at_device + at * BLOCKS * PAGE, PAGE, at * PAGE, PAGE) for at in range(LAYERS))
        self.layout = Layout((pages,), 1, LAYERS * PAGE, at_region, PAGE)
        self.arrivals = Arrivals(mmap.mmap(-1, BLOCKS * ROW_BYTES))
        self.loads = LayerwiseDiskLoads(layer_parts(self.layout), self.arrivals, SOON_S)
        for slot in self.slots:
            self.arrivals.expect(slot, SEED, seeded_checksum(SEED, self.in_region(slot)))
        spec = SimpleNamespace(
            block_ids=np.array(self.blocks), group_sizes=[len(self.blocks)], block_indices=[0]
        )
        tickets = np.array(self.tickets, np.int64)
        self.bytes = self.loads.start(1, spec, np.array(self.slots, np.int32), tickets)

    def tell(self, parts: int) -> None:
        for slot in self.slots:
            self.arrivals.tell(slot, TICKET, parts)

    def found(self) -> list[int]:
        return [self.arrivals.how_far(slot, TICKET) for slot in self.slots]

    def in_region(self, slot: int) -> bytes:
        return self.region[slot * SLOT : (slot + 1) * SLOT]

    def copied(self) -> list[list[bool]]:
        """For each layer, which of the device's blocks are as they should be; the rest must be untouched."""
        rows = []
        for layer in range(LAYERS):
            pages = [self.device[at : at + PAGE] for at in self._places(layer, range(BLOCKS))]
            assert not any(any(pages[block]) for block in set(range(BLOCKS)) - set(self.blocks))
            wanted = [self.in_region(slot)[layer * PAGE : (layer + 1) * PAGE] for slot in self.slots]
            rows.append([pages[block] == want for block, want in zip(self.blocks, wanted, strict=True)])
        return rows

    def outcome(self) -> CopyResult:
        (outcome,) = self.loads.take_finished()
        assert outcome.job_id == 1
        assert self.loads.take_finished() == []
        return outcome

    @staticmethod
    def _places(layer: int, blocks: range) -> list[int]:
        return [(layer * BLOCKS + block) * PAGE for block in blocks]


def scene(slots: list[int], blocks: list[int], tickets: list[int] | None = None) -> Scene:
    return Scene(slots, blocks, tickets or [TICKET] * len(slots))


def rows(layers: int, count: int) -> list[list[bool]]:
    return [[layer < layers] * count for layer in range(LAYERS)]


@pytest.mark.parametrize(
    ("slots", "blocks"),
    [([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]), ([9, 4, 5, 6, 0], [3, 1, 2, 11, 7]), ([3], [0])],
)
def test_a_layer_finds_its_part_and_the_next_is_not_waited_for(slots: list[int], blocks: list[int]) -> None:
    load = scene(slots, blocks)
    assert load.bytes == len(slots) * LAYERS * PAGE
    for part, last in enumerate(LAST_OF_PART):
        load.tell(part + 1)
        for layer in range(LAST_OF_PART[part - 1] + 1 if part else 0, last + 1):
            load.loads.wait_for_layer(1, layer)
            assert load.copied() == rows(last + 1, len(slots))
            assert load.loads.is_last(layer) == (part == PARTS - 1)
    assert load.found() == [WHOLE] * len(slots)
    assert load.outcome().error is None


def test_a_layer_waits_for_its_part_of_every_block() -> None:
    load = scene([0, 1], [0, 1])
    load.arrivals.tell(0, TICKET, PARTS)
    asked = threading.Thread(target=load.loads.wait_for_layer, args=(1, 0))
    asked.start()
    assert load.copied() == rows(0, 2)
    load.arrivals.tell(1, TICKET, 1)
    asked.join(SOON_S)
    assert load.copied() == rows(1, 2)


def test_a_load_whose_layers_nobody_asks_for_ends_when_it_is_settled() -> None:
    load = scene([0, 1, 2], [2, 1, 0])
    load.tell(PARTS)
    assert load.loads.take_finished() == []
    load.loads.finish([1, 2])
    assert load.copied() == rows(LAYERS, 3)
    assert load.outcome().error is None
    load.loads.wait_for_layer(1, 7)  # nothing to wait for


@pytest.mark.filterwarnings("ignore")  # vLLM's own, as it is imported
def test_who_waits_for_a_load_finds_it_ended_though_its_layers_were_not_asked_for() -> None:
    from kvtier_connector.vllm.offloading.worker import KVTierWorker  # noqa: PLC0415 - takes seconds

    load = scene([0, 1], [3, 4])
    load.tell(PARTS)
    copier = MemcpyCopier()
    memory = SimpleNamespace()  # nobody looks there
    worker = KVTierWorker(load.layout, memory, copier, layerwise_disk_loads=load.loads)  # type: ignore[arg-type] # see above
    worker.wait({1})
    assert load.copied() == rows(LAYERS, 2)
    worker.shutdown()


@pytest.mark.parametrize("place", [0, PAGE - 1, LAYERS * PAGE - 1, SLOT - 1])
def test_damage_fails_the_load_when_the_disk_has_seen_it_too(place: int) -> None:
    load = scene([0, 1, 2], [0, 1, 2])
    load.region[SLOT + place] ^= 1
    load.tell(PARTS)
    asked = threading.Thread(target=load.loads.finish, args=([1],))
    asked.start()
    load.arrivals.wait(np.array([0, 2]), np.array([TICKET, TICKET]), WHOLE, SOON_S)
    load.arrivals.wait(np.array([1]), np.array([TICKET]), DOUBTED, SOON_S)
    assert asked.is_alive()
    load.arrivals.tell(1, TICKET, FAILED)
    asked.join(SOON_S)
    assert isinstance(load.outcome().error, DiskError)
    assert load.copied()[3:] == rows(0, 3)[3:], "layers that nobody may compute with are not copied"


def test_a_doubt_fails_the_load_whatever_the_disk_says() -> None:
    load = scene([0], [0])
    load.region[0] ^= 1
    load.tell(PARTS)
    asked = threading.Thread(target=load.loads.finish, args=([1],))
    asked.start()
    load.arrivals.wait(np.array([0]), np.array([TICKET]), DOUBTED, SOON_S)
    load.tell(WHOLE)
    asked.join(SOON_S)
    assert str(load.outcome().error) == "a block's checksum is wrong"


def test_what_is_known_to_be_right_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block was in memory before, and one the disk's thread has checked."""
    load = scene([0, 1, 2], [0, 1, 2], [0, TICKET, TICKET])
    seen = list[bytes]()

    def watched(seed: int, data: bytes) -> int:
        seen.append(bytes(data))
        return seeded_checksum(seed, data)

    monkeypatch.setattr(layerwise_disk_loads, "seeded_checksum", watched)
    load.tell(PARTS)
    load.arrivals.tell(1, TICKET, WHOLE)
    load.loads.finish([1])
    assert seen == [load.in_region(2)]
    assert load.copied() == rows(LAYERS, 3)
    assert load.arrivals.how_far(0, TICKET) == PARTS, "of what it has not read, it tells nothing"
    assert load.outcome().error is None


@pytest.mark.parametrize("layer", LAST_OF_PART)
def test_a_read_that_fails_is_the_loads_failure(layer: int) -> None:
    load = scene([0, 1], [0, 1])
    load.tell(LAST_OF_PART.index(layer))
    load.arrivals.tell(1, TICKET, FAILED)
    load.loads.wait_for_layer(1, layer)
    assert str(load.outcome().error) == "a block could not be read from disk"
    load.loads.finish([1])
    assert load.loads.take_finished() == []
