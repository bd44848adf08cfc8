"""A block's checksum belongs to its bytes, its key and its namespace."""

from kvtier_connector.core.disk.files.fingerprint import bound_checksum

BLOCK = bytes(range(256)) * 16


def test_it_changes_with_every_bit_of_a_block() -> None:
    right = bound_checksum(1, b"key", BLOCK)
    for place in range(len(BLOCK)):
        for bit in range(8):
            damaged = bytearray(BLOCK)
            damaged[place] ^= 1 << bit
            assert bound_checksum(1, b"key", damaged) != right


def test_another_blocks_bytes_are_refused_though_they_are_whole() -> None:
    found = {
        bound_checksum(namespace, key, BLOCK) for namespace in (1, 2) for key in (b"key", b"yek", b"key\0")
    }
    assert len(found) == 6
