"""What the server of a store reads: its configuration, and scripts without a secret in their arguments."""

from dataclasses import dataclass
from typing import Final

from kvtier_common.redis_protocol import PORT
from kvtier_operator.planning.store.store_plan import StoreSize
from kvtier_operator.planning.units import MIB

CONFIG_FOLDER: Final = "/etc/kvtier/store/config"
CREDENTIALS_FOLDER: Final = "/etc/kvtier/store/credentials"
TLS_FOLDER: Final = "/etc/kvtier/store/tls"
RUN_FOLDER: Final = "/run/kvtier"
"""Memory that only the pod sees; all that its server writes to."""
CONFIG_FILE: Final = "valkey.conf"
START_FILE: Final = "start.sh"
PING_FILE: Final = "ping.sh"

CERTIFICATE_FILES: Final = ("tls.crt", "tls.key")
_RELOAD_S: Final = 60
_LARGEST_VALUE_BYTES: Final = 64 * MIB
"""Far above a chunk; Valkey's own limit of 512 MiB would let one value empty a small store."""
_ALLOWED: Final = (
    # values, their times to live, and a client's own connection; neither scripts nor other users' names
    "+@string +@keyspace +@connection -@admin -@dangerous "
    # names of values: whether a known prompt was asked can be read from them
    "-scan -randomkey -dbsize -rename -renamenx -copy -move "
    # what a server holds, where a cluster has its slots, and what a check of rights asks
    "+info +cluster|slots +cluster|shards +acl|dryrun +acl|whoami"
)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the server finds its files; those of the pod unless a test says otherwise."""

    config: str = CONFIG_FOLDER
    credentials: str = CREDENTIALS_FOLDER
    tls: str = TLS_FOLDER
    run: str = RUN_FOLDER
    port: int = PORT


_OF_THE_POD: Final = Folders()


def server_files(size: StoreSize, folders: Folders = _OF_THE_POD, *, encrypted: bool) -> dict[str, str]:
    """Text of each file by its name."""
    return {
        CONFIG_FILE: _config(size, folders, encrypted=encrypted),
        START_FILE: _start(folders),
        PING_FILE: _ping(folders, encrypted=encrypted),
    }


def _config(size: StoreSize, folders: Folders, *, encrypted: bool) -> str:
    """Valkey's configuration: a cache in memory alone, whose values go by their last use."""
    certificate, key = (f"{folders.tls}/{name}" for name in CERTIFICATE_FILES)
    ports = (
        "port 0",
        f"tls-port {folders.port}",
        f"tls-cert-file {certificate}",
        f"tls-key-file {key}",
        "tls-auth-clients no",  # they have a password
        f"tls-auto-reload-interval {_RELOAD_S}",  # a certificate that was renewed; from Valkey 9.1 on
    )
    lines = (
        "bind * -::*",
        *(ports if encrypted else (f"port {folders.port}",)),
        "protected-mode no",  # every user has a password
        f"aclfile {folders.run}/users.acl",
        f"dir {folders.run}",
        'save ""',
        "appendonly no",
        f"maxmemory {size.held_bytes}",
        "maxmemory-policy allkeys-lru",
        "lazyfree-lazy-eviction yes",
        f"io-threads {size.io_threads}",
        f"proto-max-bulk-len {_LARGEST_VALUE_BYTES}",
        "tcp-keepalive 60",
    )
    return "".join(f"{line}\n" for line in lines)


def _start(folders: Folders) -> str:
    """Writes the user's rights and starts the server.

    The password is kept as its SHA-256, so no character of it needs to be quoted, and it stands in no
    argument and no variable. A file may end with a line feed, after a carriage return or not: both are taken
    off, as engines do. A name is one word: what stood behind it would be rights.
    """
    password, name = f"{folders.credentials}/password", f"{folders.credentials}/username"
    users = f"{folders.run}/users.acl"
    return f"""\
set -eu
umask 077
cr=$(printf '\r')
password=$(cat {password})
password=${{password%"$cr"}}
[ -n "$password" ] || {{ echo "{password} is empty: the Secret needs a password" >&2; exit 1; }}
hash=$(printf %s "$password" | sha256sum)
hash=${{hash%% *}}
user=
if [ -f {name} ]; then user=$(cat {name}); fi
user=${{user%"$cr"}}
user=${{user:-default}}
case "$user" in
  *[!A-Za-z0-9._@-]*) echo "{name}: a name has letters, digits, . _ @ and - alone" >&2; exit 1;;
esac
if [ "$user" = default ]; then : > {users}; else echo "user default reset off" > {users}; fi
echo "user $user reset on #$hash ~* {_ALLOWED}" >> {users}
unset password hash
exec valkey-server {folders.config}/{CONFIG_FILE}
"""


def _ping(folders: Folders, *, encrypted: bool) -> str:
    """Succeeds while the server answers to the password that the Secret has now.

    With another one since its start it fails, and the server starts anew with that one.
    """
    name = f"{folders.credentials}/username"
    # in the pod itself, where no certificate calls the server by its name
    tls = " --tls --insecure" if encrypted else ""
    return f"""\
cr=$(printf '\r')
REDISCLI_AUTH=$(cat {folders.credentials}/password)
REDISCLI_AUTH=${{REDISCLI_AUTH%"$cr"}}
export REDISCLI_AUTH
user=
if [ -f {name} ]; then user=$(cat {name}); fi
user=${{user%"$cr"}}
user=${{user:-default}}
[ "$(valkey-cli -p {folders.port}{tls} --user "$user" ping)" = PONG ]
"""
