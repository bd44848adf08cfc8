import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.keytable import KeyTable

KEY_BYTES = 20


@given(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES), st.data())
def test_keys_that_share_a_bucket_and_differ_in_one_bit_are_distinct(key: bytes, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, KEY_BYTES * 8 - 1), min_size=1, max_size=20, unique=True))
    others = [(int.from_bytes(key, "big") ^ 1 << bit).to_bytes(KEY_BYTES, "big") for bit in bits]
    table = KeyTable(32, KEY_BYTES)
    table._bucket_mask = 0  # every key in one bucket: as bad as any collision can get
    table.insert(np.array([3], np.int32), table.batch([key]))
    assert table.find(table.batch([key, *others])).tolist() == [3] + [-1] * len(others)
    assert [table.find_one(other) for other in others] == [-1] * len(others)

    slots = np.arange(4, 4 + len(others), dtype=np.int32)
    table.insert(slots, table.batch(others))
    assert table.find(table.batch([*others, key])).tolist() == [*slots.tolist(), 3]
    assert [table.find_one(other) for other in others] == slots.tolist()

    leaving = data.draw(st.lists(st.sampled_from(slots.tolist()), unique=True))
    table.remove(np.array(leaving, np.int32))
    expected = [-1 if slot in leaving else slot for slot in slots.tolist()]
    assert table.find(table.batch(others)).tolist() == expected
    assert [table.find_one(other) for other in others] == expected
    assert table.find_one(key) == 3
    assert table.keys_of(np.array([3], np.int32)) == [key]


def test_keys_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        KeyTable(4, KEY_BYTES).batch([b"short"])
