"""A long event in parts tells the same as the whole, and no part is long."""

import msgspec
import pytest
from tests.unit.scorer.picker.engines.kv_events.wire import name

from kvtier_common.tier import Tier
from kvtier_scorer.picker.engines.kv_events.chains import PodChains
from kvtier_scorer.picker.engines.kv_events.payload import PART_BLOCKS, BlockRemoved, BlockStored, parts

NAMES = [name(each) for each in range(2 * PART_BLOCKS + 3)]
STORED = BlockStored(list(NAMES), None, list(range(16 * len(NAMES))), 16)
SALTED = [[msgspec.Raw(msgspec.msgpack.encode("salt"))], *[None] * (len(NAMES) - 1)]
IMAGE = [None] * (len(NAMES) - 2) + [[msgspec.Raw(msgspec.msgpack.encode(["image", 0]))], None]


@pytest.mark.parametrize("keys", [None, SALTED, IMAGE], ids=["text", "salt", "image"])
def test_parts_of_what_is_stored_and_removed_come_to_the_whole(keys: list[list[msgspec.Raw] | None]) -> None:
    event = msgspec.structs.replace(STORED, extra_keys=keys)
    whole, cut = PodChains(16, "m"), PodChains(16, "m")
    expected = [each for run in whole.store(event, Tier.GPU) for each in run.hashes.tolist()]
    told: list[int] = []
    for part in parts(event):
        assert isinstance(part, BlockStored)
        assert len(part.block_hashes) <= PART_BLOCKS
        told += [each for run in cut.store(part, Tier.GPU) for each in run.hashes.tolist()]
    assert told == expected
    assert cut._held == whole._held
    removed = [each for each in parts(BlockRemoved(list(NAMES))) if isinstance(each, BlockRemoved)]
    assert [each for part in removed for each in part.block_hashes] == NAMES
    assert max(len(each.block_hashes) for each in removed) == PART_BLOCKS


def test_what_does_not_fit_is_not_cut() -> None:
    event = msgspec.structs.replace(STORED, token_ids=[1])
    assert list(parts(event)) == [event]
