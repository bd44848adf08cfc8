"""Bodies that come in parts."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from kvtier_scorer.picker.gateway.body_memory import BodyBuffer

MIB = 1 << 20


@given(st.lists(st.sampled_from([b"", b"a", b"bc", bytes(4095), bytes(4096), bytes(5000)]), max_size=8))
def test_the_whole_is_its_parts(parts: list[bytes]) -> None:
    received = BodyBuffer()
    for each in parts:
        received.add(each)
    assert received.take() == b"".join(parts)
    assert received.take() == b""


def test_many_small_parts_take_hardly_more_than_their_bytes() -> None:
    received = BodyBuffer()
    tracemalloc.start()
    for place in range(MIB):
        received.add(b"%d" % (place % 10))
        received.add(b"")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1.5 * MIB
    assert len(received.take()) == MIB
