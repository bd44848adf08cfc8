import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.index.chain import text_hashes

SEEDS = st.integers(0, 2**64 - 1)


@given(data=st.binary(min_size=1, max_size=200), seed=SEEDS)
def test_one_block_hashes_as_the_library_does(data: bytes, seed: int) -> None:
    assert text_hashes(data, seed, len(data), 1).tolist() == [xxhash.xxh64_intdigest(data, seed)]


# every way through the algorithm: stripes of 32 bytes, then words of 8, of 4, and single bytes
@pytest.mark.parametrize("size", [*range(1, 70), 1024, 4096 + 31])
def test_each_size(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    for seed in (0, 1, 2**64 - 1):
        assert text_hashes(data, seed, size, 1).tolist() == [xxhash.xxh64_intdigest(data, seed)]
