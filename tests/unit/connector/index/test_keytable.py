import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.index.keytable import KeyTable, marks

KEY_BYTES = 20


@given(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES), st.data())
def test_keys_that_share_a_bucket_and_differ_in_one_bit_are_distinct(key: bytes, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, KEY_BYTES * 8 - 1), min_size=1, max_size=20, unique=True))
    others = [(int.from_bytes(key, "big") ^ 1 << bit).to_bytes(KEY_BYTES, "big") for bit in bits]
    table = KeyTable(32, KEY_BYTES)
    table._bucket_mask = 1  # every key in one of two buckets: nearly as bad as collisions can get
    table.insert(np.array([3], np.int32), table.batch([key]), np.array([0]))
    assert table.find(table.batch([key, *others])).tolist() == [3] + [-1] * len(others)
    assert [table.find_one(other) for other in others] == [-1] * len(others)

    slots = np.arange(4, 4 + len(others), dtype=np.int32)
    table.insert(slots, table.batch([key, *others]), np.arange(1, 1 + len(others)))
    assert table.find(table.batch([*others, key])).tolist() == [*slots.tolist(), 3]
    assert [table.find_one(other) for other in others] == slots.tolist()

    leaving = data.draw(st.lists(st.sampled_from(slots.tolist()), unique=True))
    table.remove(np.array(leaving, np.int32))
    expected = [-1 if slot in leaving else slot for slot in slots.tolist()]
    assert table.find(table.batch(others)).tolist() == expected
    assert [table.find_one(other) for other in others] == expected
    assert table.find_one(key) == 3
    assert table.keys_of(np.array([3], np.int32)) == [key]


def test_marks_are_those_of_the_key_wherever_it_is_and_differ_with_each_of_its_bits() -> None:
    key = int.from_bytes(range(KEY_BYTES), "big")
    keys = [
        (key ^ bit).to_bytes(KEY_BYTES, "big") for bit in (0, *(1 << bit for bit in range(8 * KEY_BYTES)))
    ]
    table = KeyTable(len(keys), KEY_BYTES)
    batch, slots = table.batch(keys), np.arange(len(keys), dtype=np.int32)
    found = marks(batch.words)
    assert len(set((found % 1_000_003).tolist())) == len(set((found >> 32).tolist())) == len(keys)
    table.insert(slots, batch, np.arange(len(keys))[::-1].copy())
    assert table.marks_of(slots).tolist() == found[::-1].tolist()


def test_keys_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        KeyTable(4, KEY_BYTES).batch([b"short"])
