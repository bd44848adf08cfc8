"""KV events as they are on the wire, and long ones in parts."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.picker.engines.kv_events.wire import CLEARED, batch, name, removed_event, stored_event

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS
from kvtier_scorer.picker.engines.kv_events.chains import PodChains
from kvtier_scorer.picker.engines.kv_events.payload import (
    PART_BLOCKS,
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    MalformedEventsError,
    decode,
    parts,
    tier_of,
)

WHOLE = batch(stored_event([name(1)], range(16), extra_keys=[["a"]]), removed_event([name(1)]), CLEARED)


def test_maps_are_read() -> None:
    one, two, three = decode(WHOLE)
    assert isinstance(one, BlockStored)
    assert isinstance(two, BlockRemoved)
    assert isinstance(three, AllBlocksCleared)
    assert (one.block_hashes, one.token_ids, one.medium) == ([name(1)], list(range(16)), "GPU")


def test_arrays_of_older_engines_are_read_with_and_without_what_came_later() -> None:
    old = ["BlockStored", [-5], 7, [1, 2], 2, None]
    newer = [*old, "CPU", "adapter", [["adapter"]], 0, "full_attention", 12, "more", {"and": "more"}]
    told = decode(msgspec.msgpack.encode([1.0, [old, newer, ["BlockRemoved", [1]], ["AllBlocksCleared"]]]))
    one, two, three, four = told
    assert isinstance(one, BlockStored)
    assert isinstance(two, BlockStored)
    assert isinstance(three, BlockRemoved)
    assert isinstance(four, AllBlocksCleared)
    assert (one.block_hashes, one.parent_block_hash, one.medium) == ([-5], 7, None)
    assert (two.medium, two.lora_name, two.group_idx) == ("CPU", "adapter", 0)


def test_kinds_that_are_not_known_are_counted() -> None:
    told = list(decode(batch({"type": "BlockPinned", "x": 1}, ["New", 3], 5, removed_event([1]))))
    assert [each is None for each in told] == [True, True, True, False]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        WHOLE[:-1],
        WHOLE + b"\x00",
        msgspec.msgpack.encode({"ts": 1}),
        msgspec.msgpack.encode([1.0]),
        batch(stored_event([name(1)], range(16)) | {"token_ids": ["a"]}),
        batch(stored_event([name(1)], [2**32])),
        batch(stored_event([name(1)], [-1])),
        batch(removed_event([]) | {"block_hashes": None}),
        batch(["BlockRemoved", "x"]),
        batch({"type": "BlockRemoved"}),
    ],
)
def test_what_is_malformed_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedEventsError):
        list(decode(payload))


@given(st.binary(max_size=60), st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_mutated_batches_are_read_or_refused(garbage: bytes, first: int, last: int) -> None:
    with contextlib.suppress(MalformedEventsError):
        list(decode(WHOLE[:first] + garbage + WHOLE[last:]))


NAMES = [name(number) for number in range(2 * PART_BLOCKS + 3)]
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
    removed = [part for part in parts(BlockRemoved(list(NAMES))) if isinstance(part, BlockRemoved)]
    assert [each for part in removed for each in part.block_hashes] == NAMES
    assert max(len(each.block_hashes) for each in removed) == PART_BLOCKS


def test_what_does_not_fit_is_not_cut() -> None:
    event = msgspec.structs.replace(STORED, token_ids=[1])
    assert list(parts(event)) == [event]


def test_what_all_pods_share_is_nobodys() -> None:
    """Any pod finds it there: to count it for the one that wrote it would send its prompts there."""
    assert [tier_of(tier.name) for tier in Tier] == [Tier.GPU, Tier.CPU, Tier.DISK, None]
    assert Tier.REMOTE not in PREFIX_SCORERS
