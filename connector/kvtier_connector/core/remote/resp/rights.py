"""What a server lets a tier do, by what it says itself."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from kvtier_connector.core.remote.findings import Finding, Level
from kvtier_connector.core.remote.resp.connect import Access, connect_one
from kvtier_connector.core.remote.resp.connection import Reply
from kvtier_connector.errors import RemoteDeniedError, RemoteError

_USED: Final = {  # commands, and what stands behind the key
    b"GET": (),
    b"SET": (b"value", b"EX", b"60"),
    b"STRLEN": (),
    b"DEL": (),
}


def rights(access: Access, prefix: bytes) -> Iterator[Finding]:
    """Tell which commands the server would refuse these credentials (ACL DRYRUN, of Redis 7 and Valkey)."""
    key = prefix + b"{examine}:0"
    try:
        user = _asked(access, b"ACL", b"WHOAMI")
        lacking = [
            command.decode()
            for command, behind in _USED.items()
            if _asked(access, b"ACL", b"DRYRUN", _text(user), command, key, *behind) != b"OK"
        ]
    except RemoteDeniedError:
        yield Finding(
            Level.NOTE, "rights: not told, as these credentials may not ask (ACL WHOAMI, ACL DRYRUN)"
        )
        return
    except RemoteError as error:
        yield Finding(Level.NOTE, f"rights: not told, as the server cannot say: {error}")
        return
    keys = f"{prefix.decode()}*"
    if lacking:
        yield Finding(
            Level.BAD,
            f"rights: {', '.join(lacking)} of {keys} denied; grant them: ACL SETUSER USER ~{keys} "
            + " ".join(f"+{command.lower()}" for command in lacking),
            "remote_credentials_path",
        )
    else:
        yield Finding(Level.GOOD, f"rights: may read and write {keys}")


def _asked(access: Access, *words: bytes) -> Reply:
    """Ask by a connection of its own, which an error's reply closes."""
    with closing(connect_one(access, access.url.addresses[0])) as connection:
        return connection.ask(*words, timeout_s=access.timeout_s)


def _text(reply: Reply) -> bytes:
    return reply if isinstance(reply, bytes) else b""
