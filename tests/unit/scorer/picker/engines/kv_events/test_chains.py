"""Engine blocks become the chained hashes that a request for the same tokens has."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from tests.unit.scorer.picker.engines.kv_events.wire import name, removed_event, stored_event

from kvtier_common.tier import Tier
from kvtier_scorer.config.contract import BYTES_PER_HELD_BLOCK
from kvtier_scorer.index.chain import prefix_seed, token_hashes
from kvtier_scorer.picker.engines.kv_events.chains import PodChains, Run, UnalignedBlocksError
from kvtier_scorer.picker.engines.kv_events.payload import BlockRemoved, BlockStored

PROMPT = tuple(range(100, 164))


def asked(tokens: Sequence[int] = PROMPT, *, model: str = "m", salt: str = "", block: int = 16) -> list[int]:
    """Hashes of a request for these tokens."""
    ids = np.array(tokens, np.uint32)
    seed = prefix_seed(model, salt, tokens=True)
    hashes: list[int] = token_hashes(ids, seed, block, 1 << 20).tolist()
    return hashes


def told(runs: Sequence[Run]) -> list[int]:
    return [value for run in runs for value in run.hashes.tolist()]


def pod(block: int = 16) -> PodChains:
    return PodChains(block, "m")


def store(
    chains: PodChains,
    hashes: Sequence[bytes | int],
    tokens: Sequence[int],
    parent: bytes | int | None = None,
    tier: Tier = Tier.GPU,
    **more: object,
) -> tuple[Run, ...]:
    event = stored_event(hashes, tokens, parent) | more
    return chains.store(msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=BlockStored), tier)


def remove(
    chains: PodChains, hashes: Sequence[bytes | int], tier: Tier = Tier.GPU, **more: object
) -> tuple[Run, ...]:
    return chains.remove(msgspec.convert(removed_event(hashes) | more, BlockRemoved), tier)


FOUR = [name(number) for number in range(4)]


def test_blocks_are_those_of_a_request_for_the_same_tokens() -> None:
    (run,) = store(pod(), FOUR, PROMPT)
    assert run.hashes.tolist() == asked()
    assert (run.tier, run.parent) == (Tier.GPU, None)


def test_later_blocks_follow_their_parent() -> None:
    chains = pod()
    store(chains, FOUR[:2], PROMPT[:32])
    (run,) = store(chains, FOUR[2:], PROMPT[32:], FOUR[1])
    assert run.hashes.tolist() == asked()[2:]
    assert run.parent == asked()[1]


def test_whole_numbers_and_bytes_name_the_same_block() -> None:
    chains = pod()
    store(chains, FOUR[:1], PROMPT[:16])
    (run,) = store(chains, [7], PROMPT[16:32], int.from_bytes(FOUR[0][-8:], "big"))
    assert run.hashes.tolist() == asked()[1:2]
    assert told(store(pod(), [-5], PROMPT[:16])) == asked()[:1]


@pytest.mark.parametrize("block", [4, 8, 16])
def test_a_larger_engine_block_is_several_of_ours(block: int) -> None:
    chains = pod(block)
    assert told(store(chains, FOUR, PROMPT)) == asked(block=block)
    each = 16 // block
    assert told(remove(chains, FOUR[1:2])) == asked(block=block)[each : 2 * each]


@pytest.mark.parametrize("block", [32, 24, 5])
def test_blocks_that_do_not_divide_are_an_error(block: int) -> None:
    with pytest.raises(UnalignedBlocksError, match=f"16 tokens, not a multiple of {block}"):
        store(pod(block), FOUR, PROMPT)


def test_adapter_and_salt_keep_prefixes_apart() -> None:
    keys = [["adapter", "salt"], ["adapter"], ["adapter"], ["adapter"]]
    runs = store(pod(), FOUR, PROMPT, lora_name="adapter", extra_keys=keys)
    assert told(runs) == asked(model="adapter", salt="salt")
    assert told(store(pod(), FOUR, PROMPT, extra_keys=[["salt"], None, None, None])) == asked(salt="salt")
    assert told(store(pod(), FOUR, PROMPT, lora_name="adapter")) == asked(model="adapter")
    same = [["x", "x"], ["x"], ["x"], ["x"]]
    assert told(store(pod(), FOUR, PROMPT, lora_name="x", extra_keys=same)) == asked(model="x", salt="x")


def test_events_of_the_tiers_below_that_leave_out_the_salt_are_understood_by_name() -> None:
    chains = pod()
    store(chains, FOUR, PROMPT, extra_keys=[["salt"], None, None, None])
    assert told(store(chains, FOUR, PROMPT, tier=Tier.CPU)) == asked(salt="salt")


def test_events_without_tokens_are_understood_by_name() -> None:
    chains = pod()
    store(chains, FOUR, PROMPT)
    runs = store(chains, [FOUR[3], name(99), FOUR[1]], (), tier=Tier.CPU)
    assert [(run.hashes.tolist(), run.parent) for run in runs] == [
        (asked()[3:4], asked()[2]),
        (asked()[1:2], asked()[0]),
    ]
    assert chains.not_understood == 1
    remove(chains, FOUR)
    assert told(store(chains, FOUR[1:2], (), tier=Tier.DISK)) == asked()[1:2], "the CPU tier still names it"


def test_blocks_after_an_image_say_nothing_about_other_prompts() -> None:
    chains = pod()
    keys = [None, [["image", 3]], None, None]
    assert told(store(chains, FOUR, PROMPT, extra_keys=keys)) == asked()[:1]
    assert store(chains, [name(9)], PROMPT[:16], FOUR[3]) == ()
    assert store(chains, FOUR[1:], PROMPT[16:], FOUR[0], tier=Tier.CPU) == (), "told without the image"
    assert told(remove(chains, FOUR)) == asked()[:1]


def test_blocks_whose_parent_is_not_known_are_learned_when_they_are_told_again() -> None:
    chains = pod()
    assert store(chains, FOUR[2:], PROMPT[32:], FOUR[1]) == ()
    assert chains.not_understood == 2
    assert told(store(chains, FOUR, PROMPT)) == asked()


def test_a_block_told_twice_is_gone_when_removed_twice() -> None:
    chains = pod()
    store(chains, FOUR, PROMPT)
    store(chains, FOUR[:2], PROMPT[:32])
    assert told(remove(chains, FOUR)) == asked()[2:]
    assert told(remove(chains, FOUR)) == asked()[:2]
    assert remove(chains, FOUR) == ()


def test_tiers_are_apart() -> None:
    chains = pod()
    store(chains, FOUR, PROMPT)
    store(chains, FOUR, PROMPT, tier=Tier.CPU)
    assert [run.tier for run in remove(chains, FOUR)] == [Tier.GPU]
    assert (chains.held_entries(Tier.GPU), chains.held_entries(Tier.CPU)) == (0, 4)


def test_of_a_hybrid_model_the_group_that_keeps_whole_prefixes_counts() -> None:
    chains = pod()
    assert store(chains, FOUR, PROMPT, group_idx=0, kv_cache_spec_kind="sliding_window") == ()
    store(chains, FOUR, PROMPT, group_idx=1, kv_cache_spec_kind="full_attention")
    assert store(chains, FOUR, PROMPT, group_idx=2) == ()
    assert remove(chains, FOUR, group_idx=0) == ()
    assert told(remove(chains, FOUR, group_idx=1)) == asked()


def test_too_few_tokens_are_not_guessed_at() -> None:
    chains = pod()
    assert store(chains, FOUR, PROMPT[:48], block_size=16) == ()
    assert chains.not_understood == 4


def test_everything_is_told_again_with_what_it_follows() -> None:
    chains = pod()
    store(chains, FOUR, PROMPT)
    runs = list(chains.everything())
    assert told(runs) == asked()
    assert [run.parent for run in runs] == [None, *asked()[:3]]
    chains.clear()
    assert list(chains.everything()) == []


@pytest.mark.parametrize("block_tokens", [16, 64, 1 << 12, 1 << 16])
def test_a_large_block_counts_as_the_memory_of_its_entries(block_tokens: int) -> None:
    chains = pod()
    store(chains, FOUR, [7] * (4 * block_tokens))
    entries_bytes = 4 * (block_tokens // 16) * (8 + 24)
    assert entries_bytes <= chains.blocks * BYTES_PER_HELD_BLOCK <= entries_bytes + 5 * BYTES_PER_HELD_BLOCK
