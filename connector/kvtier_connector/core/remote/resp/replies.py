"""What a server of the Redis protocol (RESP2) is sent and answers, but for the values themselves."""

from typing import Final

from kvtier_common.one_line import one_line
from kvtier_connector.errors import (
    RemoteDeniedError,
    RemoteError,
    RemoteFullError,
    RemoteMovedError,
)

CRLF: Final = b"\r\n"
NIL: Final = b"$-1"
_MOST_SHOWN: Final = 200  # characters of an error of the server's
_KINDS: Final[dict[bytes, type[RemoteError]]] = {
    b"OOM": RemoteFullError,
    b"MOVED": RemoteMovedError,
    b"ASK": RemoteMovedError,
    b"CLUSTERDOWN": RemoteMovedError,
    b"READONLY": RemoteMovedError,  # a replica, which was the primary until a failover
    b"NOPERM": RemoteDeniedError,
    b"NOAUTH": RemoteDeniedError,
    b"WRONGPASS": RemoteDeniedError,
    b"DENIED": RemoteDeniedError,  # protected mode: a server without a password answers its own machine only
}


def command(*words: bytes) -> bytes:
    """Return a command as it is sent."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def get_command(key: bytes) -> bytes:
    """Return what is sent to ask for a value."""
    return b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(key), key)


def size_line(size_bytes: int) -> bytes:
    """Return what stands before a value of so many bytes, in a command or a reply."""
    return b"$%d\r\n" % size_bytes


def set_command(key: bytes, size_bytes: int, ttl_s: int) -> tuple[bytes, bytes]:
    """Return what is sent before and after a value to store it."""
    before = b"*%d\r\n$3\r\nSET\r\n" % (5 if ttl_s else 3)
    before += size_line(len(key)) + key + CRLF + size_line(size_bytes)
    after = b"%b$2\r\nEX\r\n%b%d\r\n" % (CRLF, size_line(len(b"%d" % ttl_s)), ttl_s) if ttl_s else CRLF
    return before, after


def refusal(peer: str, line: bytes) -> RemoteError:
    """Return the error for a line that is not the reply that was waited for."""
    shown = one_line(line[1:].decode("utf-8", "replace"), _MOST_SHOWN)
    if not line.startswith(b"-"):
        return RemoteError(
            f"{peer}: answers what is not the Redis protocol; is it the port of another service?"
        )
    kind = _KINDS.get(line[1:].split(b" ", 1)[0], RemoteError)
    return kind(f"{peer}: {shown}")


def number(peer: str, line: bytes) -> int:
    """Return the number of an integer's reply. Raises RemoteError: it is something else."""
    if not line.startswith(b":") or not line[1:].removeprefix(b"-").isdigit():
        raise refusal(peer, line)
    return int(line[1:])


def fields(text: bytes) -> dict[str, str]:
    """Return what INFO says, by name."""
    lines = text.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}
