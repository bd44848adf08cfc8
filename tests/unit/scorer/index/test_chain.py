import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.index.chain import prefix_seed, text_hashes, token_hashes

SEEDS = st.integers(0, 2**64 - 1)
# few different blocks, so that prompts often share some of them and not others
BLOCKS = st.lists(st.sampled_from([b"aaaa", b"aaab", b"b\0\0\0"]), max_size=8)
WORDS = st.text("ab", max_size=3)


@given(data=st.binary(max_size=300), seed=SEEDS, block_bytes=st.integers(1, 80))
def test_each_block_is_seeded_by_the_one_before(data: bytes, seed: int, block_bytes: int) -> None:
    expected, before = [], seed
    for start in range(0, len(data) - block_bytes + 1, block_bytes):
        before = xxhash.xxh64_intdigest(data[start : start + block_bytes], before)
        expected.append(before)
    assert text_hashes(data, seed, block_bytes, 1000).tolist() == expected


@given(one=BLOCKS, other=BLOCKS, seed=SEEDS)
def test_identical_prefixes_and_only_those_chain_equal(
    one: list[bytes], other: list[bytes], seed: int
) -> None:
    hashes = text_hashes(b"".join(one), seed, 4, 8).tolist()
    others = text_hashes(b"".join(other), seed, 4, 8).tolist()
    for i, chained in enumerate(hashes):
        for j, other_chained in enumerate(others):
            assert (chained == other_chained) == (one[: i + 1] == other[: j + 1])


@given(data=st.binary(max_size=100), block_bytes=st.integers(1, 40), rest=st.integers(0, 39))
def test_a_last_block_that_is_not_full_changes_nothing(data: bytes, block_bytes: int, rest: int) -> None:
    whole = data[: len(data) // block_bytes * block_bytes]
    longer = whole + bytes(min(rest, block_bytes - 1))
    hashes = text_hashes(longer, 7, block_bytes, 1000).tolist()
    assert len(hashes) == len(whole) // block_bytes
    assert hashes == text_hashes(whole, 7, block_bytes, 1000).tolist()


def test_no_more_blocks_than_asked_for() -> None:
    everything = text_hashes(b"abcdefgh", 0, 2, 100).tolist()
    assert len(everything) == 4
    assert text_hashes(b"abcdefgh", 0, 2, 3).tolist() == everything[:3]
    assert text_hashes(b"abcdefgh", 0, 2, 0).tolist() == []
    assert text_hashes(b"", 0, 2, 3).tolist() == []


@given(tokens=st.lists(st.integers(0, 2**32 - 1), max_size=40), block_tokens=st.integers(1, 9), seed=SEEDS)
def test_tokens_hash_as_uint32_little_endian(tokens: list[int], block_tokens: int, seed: int) -> None:
    data = b"".join(token.to_bytes(4, "little") for token in tokens)
    for kind in ("<u4", ">u4"):
        hashes = token_hashes(np.array(tokens, kind), seed, block_tokens, 1000)
        assert hashes.tolist() == text_hashes(data, seed, 4 * block_tokens, 1000).tolist()


def test_tokens_may_be_any_kind_of_array() -> None:
    every_other = np.arange(100, dtype=np.uint32)[::2]
    frozen = every_other.copy()
    frozen.flags.writeable = False
    expected = token_hashes(every_other.copy(), 1, 4, 100).tolist()
    assert len(expected) == 12
    assert token_hashes(every_other, 1, 4, 100).tolist() == expected
    assert token_hashes(frozen, 1, 4, 100).tolist() == expected


@pytest.mark.parametrize("block", [0, -1])
def test_a_block_has_a_size(block: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1 byte or token, not {block}"):
        text_hashes(b"abc", 0, block, 1)
    with pytest.raises(ValueError, match="at least 1 byte or token"):
        token_hashes(np.zeros(4, np.uint32), 0, block, 1)


@given(one=st.tuples(WORDS, WORDS, st.booleans()), other=st.tuples(WORDS, WORDS, st.booleans()))
def test_chains_start_apart_by_model_salt_and_form(
    one: tuple[str, str, bool], other: tuple[str, str, bool]
) -> None:
    assert (_seed(*one) == _seed(*other)) == (one == other)


def test_an_adapter_is_a_model_of_its_own() -> None:
    text = b"x" * 64
    base, adapter = (
        text_hashes(text, prefix_seed(name, "", tokens=False), 16, 4) for name in ("base", "lora")
    )
    assert not set(base.tolist()) & set(adapter.tolist())


def test_names_that_are_not_unicode_have_a_seed_too() -> None:
    assert _seed("\ud800", "") != _seed("", "\ud800")


def _seed(model: str, salt: str, tokens: bool = False) -> int:
    token_ids = np.zeros(4, np.uint32) if tokens else None
    return prefix_seed(model, salt, tokens=token_ids is not None)


@given(data=st.binary(min_size=1, max_size=200), seed=SEEDS)
def test_one_block_hashes_as_the_library_does(data: bytes, seed: int) -> None:
    assert text_hashes(data, seed, len(data), 1).tolist() == [xxhash.xxh64_intdigest(data, seed)]


# every way through the algorithm: stripes of 32 bytes, then words of 8, of 4, and single bytes
@pytest.mark.parametrize("size", [*range(1, 70), 1024, 4096 + 31])
def test_each_size(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    for seed in (0, 1, 2**64 - 1):
        assert text_hashes(data, seed, size, 1).tolist() == [xxhash.xxh64_intdigest(data, seed)]
