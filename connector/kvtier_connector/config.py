"""The connector's settings, as they travel in vLLM's ``kv_connector_extra_config``.

Imports neither vLLM nor torch: the planner renders these settings and the engine parses them, both
through this one file, so the two cannot disagree on a name, a type or a default.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import Any, Final

from kvtier_common.hints import MOST_TENANT_CHARACTERS, RETAINED_SHARE
from kvtier_common.metrics.hints import OTHER
from kvtier_common.redis_protocol import SCHEMES
from kvtier_common.string_enum import StrEnum
from kvtier_connector.errors import SettingError

CONNECTOR_NAME: Final = "KVTierConnector"
CONNECTOR_MODULE: Final = "kvtier_connector.vllm.connector"
SPEC_NAME: Final = "KVTierOffloadingSpec"
SPEC_MODULE: Final = "kvtier_connector.vllm.spec"

MIB: Final = 1 << 20
GIB: Final = 1 << 30
HUGEPAGE_BYTES: Final = (2 * MIB, GIB, 512 * MIB, 16 * GIB)
"""Of hugetlbfs on x86-64, and on arm64 with pages of 4 KiB; the last two are arm64's with pages of 64 KiB
(Linux, Documentation/arch/arm64/hugetlbpage.rst)."""


KEY_BYTES: Final = 36
"""Of a chunk's key: SHA-256, vLLM's default prefix-caching hash, and four bytes for the KV cache group."""
REMOTE_CONNECTIONS: Final = range(2, 17)
"""Of one engine to its remote tier."""
REMOTE_SCHEMES: Final = (*SCHEMES, "mooncake")
"""Of the URLs of remote tiers that this connector speaks to."""
REMOTE_DEPTH: Final = 2
"""Blocks that one connection is asked for at a time: a server buffers what is not read yet."""
REMOTE_VALUE_BYTES: Final = 4 * MIB
"""No value of a remote tier is larger."""
MOONCAKE_ROOM_BYTES: Final = REMOTE_VALUE_BYTES
MOONCAKE_ROOMS: Final = 2
"""Values that a connection to a Mooncake store passes through memory of its own at a time."""
MOONCAKE_CLIENT_BYTES: Final = 80 * MIB
"""Of the process that each connection to a Mooncake store has: 82 MiB resident with these rooms, of which 14
are shared with others; measured with 0.3.13 over TCP."""
CUDA_CHUNK_TOKENS: Final = 64
"""Of a chunk on a GPU, whose copies want large pages."""
DISK_ALIGNMENT_BYTES: Final = 4096
"""Of offsets, lengths and addresses for O_DIRECT: no disk's logical blocks are larger (open(2), NOTES)."""
DISK_WRITE_SHARE: Final = 4
"""One chunk in so many of the memory may wait to be written: it stays there until then."""
DISK_INDEX_SIZES: Final = 5
"""The index on disk grows to at most four full snapshots, and a new one is written beside it."""
DISK_SPARE_BYTES: Final = MIB  # of a disk tier, for the lock, the facts, and an index that is short
MOST_TENANTS: Final = 64
_RECORD_BYTES: Final = 16  # of a block in the index, besides its key (core/disk/files/journal.py)
_EXTENT_BYTES: Final = 24
"""For each slot, of what a file system keeps to find a file's parts. ext4 took 12.5 to 16 bytes, measured
where every other slot had been written."""
_PART: Final = frozenset({"guaranteed", "most"})
_ROUNDING: Final = 1e-9  # of a sum of shares
_EXTENT_SHIFT: Final = 17  # and 8 KiB for each GiB, however large its slots are


class Policy(StrEnum):
    """How much an operator insists on a kind of memory: Require refuses to start without it."""

    REQUIRE = "Require"
    PREFER = "Prefer"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorConfig:
    """What one engine's tiers are given. Raises SettingError: a value is of a wrong type or out of range."""

    cpu_capacity_bytes: int  # size of the CPU tier, all ranks of one engine together
    hugepages: Policy = Policy.PREFER  # whether the region must, may or must not be on hugetlbfs pages
    hugepage_bytes: int = HUGEPAGE_BYTES[0]  # hugetlbfs page size, one that the kernel has
    # whether the region must, may or must not be locked (CPU) or page-locked for DMA (CUDA)
    memlock: Policy = Policy.PREFER
    # engine blocks that are stored and looked up together. More make fewer keys and larger copies; a prompt's
    # last partial chunk is computed again. 64 tokens suit GPUs.
    blocks_per_chunk: int = 1
    offload_prompt_only: bool = True  # store the prompt's blocks only, not those of generated tokens
    self_describing_kv_events: bool = False  # put token ids into KV events (vLLM's own setting of this name)
    disk_path: str = ""  # folder of the disk tier, which one engine has at a time; empty for no disk tier
    disk_capacity_bytes: int = 0  # what the disk tier's files take, a hard bound; taken at once
    disk_direct_io: bool = True  # pass by the page cache, where the file system can
    disk_write_bytes_per_hour: int = 0  # bound on the disk's wear; 0 for none
    disk_timeout_s: float = 5.0  # a disk that needs longer for one chunk is given up until it answers again
    # read from and write to the disk only what comes back sooner than it is computed, by what is measured.
    # Without it all is, which leaves a device that others wait for free meanwhile.
    disk_break_even: bool = True
    # the store that engines share, such as redis://host:6379; several hosts with commas between
    # them, rediss:// for TLS, mooncake://host:50051 of a Mooncake master; empty for no remote tier
    remote_url: str = ""
    remote_share: str = ""  # name under which blocks are shared; only engines of one name see each other's
    remote_capacity_bytes: int = 0  # what the store may hold, all engines together
    remote_credentials_path: str = ""  # folder with a file `password`, and `username` where there is one
    remote_ca_path: str = (
        ""  # file with the authority that signed the store's certificate; empty for the system's
    )
    # file with a key of 16 bytes or more, by which engines tell their values from others'; empty for none
    remote_mac_key_path: str = ""
    remote_connections: int = 4  # to the store, or to each of its servers
    remote_write_bytes_per_s: int = 0  # bound on what this engine writes; 0 for none
    remote_ttl_s: int = 0  # after how many seconds the store forgets a block; 0 for when it needs the room
    remote_timeout_s: float = 5.0  # a store that needs longer to be connected to is given up for a while
    remote_break_even: bool = True  # as disk_break_even
    # read the weights, in the background, so that engines with copies of them share; without it files are
    # known by size and time of change, or by their names in Hugging Face's cache
    remote_weights_read: bool = False
    # on a GPU, have a step load by itself and compute with the first layers while the others are copied,
    # which saves an H200 37 of 99 ms; without it loads are apart from the step that computes
    layered_loads: bool = True
    cpu_retained_share: float = RETAINED_SHARE  # of the memory, what requests' hints may hold; 0 to 1
    disk_retained_share: float = RETAINED_SHARE  # of the disk tier, likewise
    # tenants by name: {"guaranteed": 0.2, "most": 0.5} of each tier. Nobody's store takes from the first;
    # of what one holds beyond the second, its own blocks leave first. Without them, 0 and 1.
    tenants: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # folder of the socket by which who is in the engine's container clears, fetches and looks. The engine
    # makes it; empty for none
    control_path: str = ""
    # how long a start may wait for blocks that the disk, or the engines of a shared store, used last to be
    # read into memory before the engine serves; 0 for not at all
    warm_start_s: float = 0.0
    # the engine is another's, which starts without a tier too: so it does, or with a smaller one, where the
    # tier cannot be had. Without `blocks_per_chunk` it chooses that itself, of what it alone knows.
    attached: bool = False

    @property
    def has_tiers_behind(self) -> bool:
        """Whether the scheduler's process moves blocks between memory and other tiers."""
        return bool(self.disk_path or self.remote_url)

    def __post_init__(self) -> None:
        for name in ("cpu_capacity_bytes", "blocks_per_chunk"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise _bad(name, value, "a whole number, 1 or more")
        if isinstance(self.hugepage_bytes, bool) or self.hugepage_bytes not in HUGEPAGE_BYTES:
            *others, last = sorted(HUGEPAGE_BYTES)
            allowed = f"{', '.join(map(str, others))} or {last}"
            raise _bad("hugepage_bytes", self.hugepage_bytes, f"{allowed} (bytes)")
        for name in ("hugepages", "memlock"):
            value = getattr(self, name)
            if value not in tuple(Policy):
                raise _bad(name, value, "one of " + ", ".join(Policy))
            object.__setattr__(self, name, Policy(value))
        for name in (
            "offload_prompt_only",
            "self_describing_kv_events",
            "disk_direct_io",
            "disk_break_even",
            "remote_break_even",
            "remote_weights_read",
            "layered_loads",
            "attached",
        ):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise _bad(name, value, "true or false")
        self._check_warm_start()
        self._check_disk()
        self._check_remote()
        self._check_path("control_path", "the absolute path of a folder")
        for name in ("cpu_retained_share", "disk_retained_share"):
            if not _is_share(getattr(self, name)):
                raise _bad(name, getattr(self, name), "a number from 0 to 1")
        self._check_tenants()

    def _check_warm_start(self) -> None:
        wait_s = self.warm_start_s
        if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 <= wait_s < inf:
            raise _bad("warm_start_s", wait_s, "seconds, 0 or more")

    def _check_disk(self) -> None:
        for name in ("disk_capacity_bytes", "disk_write_bytes_per_hour"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise _bad(name, value, "a whole number, 0 or more")
        self._check_path("disk_path", "the absolute path of a folder")
        if bool(self.disk_path) != bool(self.disk_capacity_bytes):
            lacking = "disk_capacity_bytes" if self.disk_path else "disk_path"
            raise _bad(lacking, getattr(self, lacking), "given too: a disk tier needs a folder and a size")
        self._check_timeout("disk_timeout_s")

    def _check_remote(self) -> None:
        for name in ("remote_capacity_bytes", "remote_write_bytes_per_s", "remote_ttl_s"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise _bad(name, value, "a whole number, 0 or more")
        for name in ("remote_url", "remote_share"):
            if not isinstance(getattr(self, name), str):
                raise _bad(name, getattr(self, name), "text")
        for name in ("remote_credentials_path", "remote_ca_path", "remote_mac_key_path"):
            self._check_path(name, "an absolute path")
        connections = self.remote_connections
        if not isinstance(connections, int) or connections not in REMOTE_CONNECTIONS:
            least, most = REMOTE_CONNECTIONS[0], REMOTE_CONNECTIONS[-1]
            raise _bad("remote_connections", connections, f"a whole number, {least} to {most}")
        self._check_timeout("remote_timeout_s")
        self._check_store()

    def _check_store(self) -> None:
        if bool(self.remote_url) != bool(self.remote_capacity_bytes):
            lacking = "remote_capacity_bytes" if self.remote_url else "remote_url"
            raise _bad(lacking, getattr(self, lacking), "given too: a remote tier needs a URL and a size")
        if not self.remote_url:
            return
        scheme, _, hosts = self.remote_url.partition("://")
        # the URL is not quoted: somebody may have written a password into it
        if scheme not in REMOTE_SCHEMES or not hosts or "@" in hosts:
            raise SettingError(
                "kv_connector_extra_config.remote_url: must be SCHEME://HOST:PORT without user and password, "
                f"with a scheme of {', '.join(REMOTE_SCHEMES)}"
            )
        if not self.remote_share:
            raise _bad("remote_share", self.remote_share, "given too: the name under which blocks are shared")

    def _check_tenants(self) -> None:
        if not isinstance(self.tenants, Mapping) or len(self.tenants) > MOST_TENANTS:
            raise SettingError(
                "kv_connector_extra_config.tenants: must be an object with the parts of each tenant, of "
                f"{MOST_TENANTS} tenants at most"
            )
        for name, part in self.tenants.items():
            where = f"tenants.{name}"
            if not isinstance(name, str) or not 0 < len(name) <= MOST_TENANT_CHARACTERS or ":" in name:
                wanted = f"a name of 1 to {MOST_TENANT_CHARACTERS} characters without colons"
                raise _bad("tenants", name, wanted)
            if name == OTHER:
                raise _bad("tenants", name, "another name: metrics call everybody who is no tenant so")
            if not isinstance(part, Mapping) or part.keys() - _PART or not all(map(_is_share, part.values())):
                raise _bad(where, part, "an object of guaranteed and most, each from 0 to 1")
            if part.get("most", 1.0) < part.get("guaranteed", 0.0):
                raise _bad(where, part, "a most that is not less than guaranteed")
        guaranteed = sum(part.get("guaranteed", 0.0) for part in self.tenants.values())
        if guaranteed > 1 + _ROUNDING:
            raise SettingError(
                f"kv_connector_extra_config.tenants: the guaranteed parts are {guaranteed:.3g} of a tier "
                "together, must be 1 at most"
            )

    def _check_path(self, name: str, wanted: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or (value and not value.startswith("/")):
            raise _bad(name, value, wanted)

    def _check_timeout(self, name: str) -> None:
        timeout_s = getattr(self, name)
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < inf:
            raise _bad(name, timeout_s, "seconds, more than 0")


def align_to_disk(size_bytes: int) -> int:
    """Return a size rounded up to what a disk can read and write."""
    return -(-size_bytes // DISK_ALIGNMENT_BYTES) * DISK_ALIGNMENT_BYTES


def disk_beside_bytes(block_bytes: int, key_bytes: int) -> int:
    """Return what of the disk's capacity goes to each slot beside its block."""
    record_bytes = _RECORD_BYTES + key_bytes
    return DISK_INDEX_SIZES * record_bytes + _EXTENT_BYTES + (block_bytes >> _EXTENT_SHIFT)


def disk_slots(capacity_bytes: int, block_bytes: int, key_bytes: int) -> int:
    """Return how many blocks a disk tier holds whose files all together stay within its capacity."""
    slot_bytes = block_bytes + disk_beside_bytes(block_bytes, key_bytes)
    return max(0, capacity_bytes - DISK_SPARE_BYTES) // slot_bytes


def parse_extra_config(extra: Mapping[str, Any]) -> ConnectorConfig:
    """Read ``kv_connector_extra_config`` strictly.

    Raises SettingError: a setting is unknown, missing or bad; the message names it and says what would do.
    """
    known = {field.name for field in fields(ConnectorConfig)}
    for name, expected in (("spec_name", SPEC_NAME), ("spec_module_path", SPEC_MODULE)):
        if extra.get(name) != expected:
            raise _bad(name, extra.get(name), repr(expected))
    unknown = sorted(extra.keys() - known - {"spec_name", "spec_module_path"})
    if unknown:
        raise SettingError(
            f"kv_connector_extra_config.{unknown[0]}: unknown setting; known are {', '.join(sorted(known))}"
        )
    if "cpu_capacity_bytes" not in extra:
        raise SettingError("kv_connector_extra_config.cpu_capacity_bytes: missing; give the CPU tier's bytes")
    return ConnectorConfig(**{name: value for name, value in extra.items() if name in known})


def kv_transfer_config(config: ConnectorConfig) -> dict[str, Any]:
    """Return the value of vLLM's ``--kv-transfer-config`` that loads this connector with `config`.

    Only settings that differ from their default are written, so the rendered command stays readable.
    """
    extra: dict[str, Any] = {"spec_name": SPEC_NAME, "spec_module_path": SPEC_MODULE}
    for each in fields(ConnectorConfig):
        value = getattr(config, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if value != default:
            extra[each.name] = str(value) if isinstance(value, Policy) else value
    return {
        "kv_connector": CONNECTOR_NAME,
        "kv_connector_module_path": CONNECTOR_MODULE,
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": extra,
    }


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _bad(name: str, value: object, wanted: str) -> SettingError:
    return SettingError(f"kv_connector_extra_config.{name}: got {value!r}, must be {wanted}")
