"""What a server allocates, by hand."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kvtier_common.redis_protocol import size_class_above, size_class_below

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size_bytes", "below", "above"),
    [
        (4 * MIB, 4 * MIB, 4 * MIB),
        (4 * MIB + 1, 4 * MIB, 5 * MIB),
        (4 * MIB - 1, 3_670_016, 4 * MIB),
        (1, 1, 1),
    ],
)
def test_four_sizes_a_doubling(size_bytes: int, below: int, above: int) -> None:
    assert (size_class_below(size_bytes), size_class_above(size_bytes)) == (below, above)


@given(st.integers(1, 2**30))
def test_a_class_is_its_own(size_bytes: int) -> None:
    below, above = size_class_below(size_bytes), size_class_above(size_bytes)
    assert below <= size_bytes <= above
    assert size_class_below(above) == size_class_above(above) == above
    assert size_class_below(below) == size_class_above(below) == below
