"""What stands behind each value in a store, by which it is seen that it is what was written under its key.

A checksum finds damage. Who may write to the store can make one that fits; without the key nobody makes a
keyed one (HMAC, RFC 2104). HMAC-SHA256 takes half of keyed BLAKE2b's time with Python's hashlib where the CPU
has instructions for SHA: 0.6 s a GiB, where the checksum takes 0.02.
"""

import hmac
import struct
from pathlib import Path
from typing import Final, Protocol

from kvtier_connector.core.disk.files.fingerprint import bound_checksum, bound_seed
from kvtier_connector.core.remote.store import Value
from kvtier_connector.errors import SettingError

SEAL_BYTES: Final = 32
_CHECKSUM: Final = struct.Struct("<4sIQQQ")
"""Format, place of the piece, its bytes, what binds it to its block, and its checksum."""
_HEAD: Final = struct.Struct("<4sIQ")
"""Of a keyed one: format, place of the piece, its bytes; 16 bytes of the MAC fill it up."""
_LEAST_KEY_BYTES: Final = 16
_KEY_NAME: Final = b"kvtier: the name of this key"
_NAME_BYTES: Final = 16


class Seal(Protocol):
    """Makes what stands behind values."""

    name: bytes  # engines whose names differ keep their blocks apart

    def behind(self, block_key: bytes, piece: int, value: Value) -> bytes:
        """Return what stands behind a piece of a block: the last of the value's memory, SEAL_BYTES long."""


class Checksum:
    """Finds damage, and values that belong elsewhere."""

    name = b""

    def __init__(self, fingerprint_number: int) -> None:
        self._number = fingerprint_number

    def behind(self, block_key: bytes, piece: int, value: Value) -> bytes:
        """Return the checksum of a piece and of where it belongs."""
        payload = value.memory[:-1]
        part = block_key + piece.to_bytes(4, "little")
        seed, checksum = bound_seed(self._number, part), bound_checksum(self._number, part, *payload)
        return _CHECKSUM.pack(b"KVT1", piece, _size_bytes(payload), seed, checksum)


class KeyedMac:
    """Finds what was written without the key, too.

    It covers the value's key in the store, in which are share, fingerprint, block and piece.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.name = hmac.digest(key, _KEY_NAME, "sha256")[:_NAME_BYTES]

    def behind(self, block_key: bytes, piece: int, value: Value) -> bytes:
        """Return the MAC of a piece and of where it belongs."""
        del block_key  # it is in the value's
        payload = value.memory[:-1]
        head = _HEAD.pack(b"KVM1", piece, _size_bytes(payload))
        mac = hmac.new(self._key, head, "sha256")
        mac.update(len(value.key).to_bytes(4, "little") + value.key)
        for view in payload:
            mac.update(view)
        return head + mac.digest()[: SEAL_BYTES - len(head)]


def read_mac_key(path: str) -> bytes:
    """Return the key that a file holds, without the line's end.

    Raises SettingError: it cannot be read, or has less than 16 bytes.
    """
    setting = "kv_connector_extra_config.remote_mac_key_path"
    try:
        key = Path(path).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise SettingError(f"{setting}: {path}: {error.strerror}") from error
    if len(key) < _LEAST_KEY_BYTES:
        raise SettingError(
            f"{setting}: {path}: the key has {len(key)} bytes, must have {_LEAST_KEY_BYTES} or more; "
            "make one by `openssl rand -hex 32`"
        )
    return key


def _size_bytes(payload: tuple[memoryview, ...]) -> int:
    return sum(view.nbytes for view in payload)
