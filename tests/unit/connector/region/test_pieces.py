"""Pieces hold whole slots and whole pages."""

from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.region.pages import SMALL_PAGE_BYTES, piece_slots, pieces_of


@given(st.integers(1, 200), st.integers(1, 50_000), st.integers(1, 1_000_000))
def test_pieces_follow_one_another_and_cut_no_slot(slots: int, slot_bytes: int, most_bytes: int) -> None:
    pieces = list(pieces_of(slots, slot_bytes, most_bytes))
    end_bytes = end_slots = 0
    for piece in pieces:
        assert piece.offset_bytes == end_bytes == end_slots * slot_bytes
        assert piece.size_bytes % SMALL_PAGE_BYTES == 0
        end_bytes, end_slots = end_bytes + piece.size_bytes, piece.slots
    assert end_slots == slots
    assert 0 <= end_bytes - slots * slot_bytes < SMALL_PAGE_BYTES
    assert len({piece.size_bytes for piece in pieces[:-1]}) <= 1


def test_a_piece_is_as_large_as_asked_for_unless_a_slot_is_larger() -> None:
    assert piece_slots(1 << 20, 128 << 20) == 128
    assert piece_slots(9 << 20, 128 << 20) == 14
    assert piece_slots(200 << 20, 128 << 20) == 1
    assert piece_slots(6144, 128 << 20) % 2 == 0  # two of them end with a page
