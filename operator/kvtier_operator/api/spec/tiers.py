"""`spec.backend` and `spec.tiers`: who moves blocks, and where the prefix cache goes beyond the device."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.quantity import ByteBound, ByteQuantity
from kvtier_operator.api.spec.pod import Volume


class Backend(StrEnum):
    """Who moves KV blocks between the device and the tiers.

    Its module is `kvtier_operator.planning.backends.<the member's name in lower case>`.

    Attributes:
        what: Whose it is or where it runs, for the field's description.
    """

    what: str

    KVTIER = "KVTier", "kvtier's own connector"
    NATIVE = "Native", "vLLM's"
    LMCACHE = "LMCache", "in the engine"
    LMCACHE_MP = "LMCacheMP", "a server beside it"

    def __new__(cls, value: str, what: str) -> Self:
        """The member of a value, with what it is."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.what = what
        return member


DEFAULT_BACKEND: Final = Backend.KVTIER
SPREADING_DISK: Final = (Backend.LMCACHE,)
"""Those that take a disk tier of several volumes."""
BOUNDING_WRITES: Final = (Backend.KVTIER,)
"""Those that keep a bound on what is written to a disk tier."""
TELLING_OF_TIERS: Final = (Backend.KVTIER,)
"""Those whose engines say how much of a tier is locked, how full it is, and whether reading it pays."""


def one_of(names: Iterable[str]) -> str:
    """Names in a sentence: `KVTier, Native or LMCache`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def cel_one_of(backends: Iterable[Backend]) -> str:
    """CEL that holds in a spec whose backend is one of these."""
    return " || ".join(f"self.backend == '{each}'" for each in backends)


class Policy(StrEnum):
    """How much a property of memory matters."""

    REQUIRE = "Require"
    PREFER = "Prefer"
    OFF = "Off"


def _off_from_boolean(value: object) -> object:
    """Takes the boolean for the word: YAML 1.1 reads an unquoted Off as false before anyone can look at it."""
    return Policy.OFF.value if value is False else value


# How a policy is read from YAML, where its author may have left the quotes out.
YamlPolicy = Annotated[Policy, BeforeValidator(_off_from_boolean)]


class HugepageSize(StrEnum):
    """Sizes of explicit huge pages on x86-64 and arm64 with 4 KiB base pages."""

    TWO_MIB = "2Mi"
    ONE_GIB = "1Gi"

    @property
    def bytes(self) -> int:
        """Size of one page in bytes."""
        return 2 * 1024**2 if self is HugepageSize.TWO_MIB else 1024**3


class Hugepages(ApiModel):
    """Explicit huge pages under the CPU tier."""

    policy: YamlPolicy = Field(
        Policy.OFF,
        description='Require refuses to run without; Prefer falls back to transparent huge pages, then 4 KiB; Off, the default, uses 4 KiB pages. Leave it out or quote it for "Off": kubectl reads an unquoted Off as false.',
    )
    page_size: HugepageSize | None = Field(
        None, description="Size of one page; 2Mi when a policy is set and this is empty."
    )

    @rule(
        "!has(self.pageSize) || self.policy != 'Off'",
        "pageSize needs a policy: set hugepages.policy to Require or Prefer",
        field=".pageSize",
    )
    def page_size_has_policy(self) -> bool:
        """A page size that nothing uses was meant otherwise."""
        return self.page_size is None or self.policy is not Policy.OFF


class Memlock(ApiModel):
    """Locking the CPU tier in memory: by the driver for DMA on CUDA, by mlock(2) on a CPU."""

    policy: YamlPolicy = Field(
        Policy.PREFER,
        description='Require refuses to start where the memory cannot be locked, and runs as root with IPC_LOCK; Prefer, the default, locks what it may without rights and says what it got; Off locks nothing: copies from and to a GPU are then slower. Quote "Off": kubectl reads an unquoted Off as false.',
    )


class CpuTierSpec(ApiModel):
    """CPU memory."""

    capacity: ByteQuantity = Field(
        description="Memory for the prefix cache, per engine pod, all ranks together.",
    )
    expected_prefix_tokens: int | None = Field(
        None,
        description="Tokens of a prefix that the workload comes back to. Only for models with sliding-window or linear-attention layers, which keep a window or a state for each prefix beside its tokens: the shorter the prefixes, the fewer tokens the tiers hold, and the picker counts on. The longest sequence when empty.",
        ge=1,
        le=2**31 - 1,
    )
    hugepages: Hugepages = Field(
        default_factory=Hugepages, description="Explicit huge pages under this tier."
    )
    memlock: Memlock = Field(default_factory=Memlock, description="Locking this tier in memory.")


class DiskTierSpec(ApiModel):
    """Local disk."""

    capacity: ByteQuantity = Field(
        description="Disk space for the prefix cache, per engine pod, all ranks and volumes together: a hard bound.",
    )
    volume: Volume = Field(description="Where this tier lives.")
    extra_volumes: list[Volume] = Field(
        default_factory=list,
        description=f"Further volumes of the same tier, one a disk; the capacity is split evenly. Only backend {one_of(SPREADING_DISK)} spreads over several.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    direct_io: bool = Field(
        default=True,
        alias="directIO",
        description="Bypass the page cache (O_DIRECT), where backend and filesystem can.",
    )
    writes_per_hour: ByteBound | None = Field(
        None,
        description=f"Bound on what is written within an hour, per engine pod, all ranks together, for the drive's wear; none when empty. What it keeps out stays in memory alone. Only backend {one_of(BOUNDING_WRITES)} has one.",
    )


class TiersSpec(ApiModel):
    """The tiers beyond the device: CPU memory, and a disk where one is wanted."""

    cpu: CpuTierSpec = Field(
        description="CPU memory; give at least its capacity. Blocks pass through it on their way to the disk and back."
    )
    disk: DiskTierSpec | None = Field(None, description="Local disk, below the CPU tier.")

    def by_tier(self) -> Mapping[Tier, CpuTierSpec | DiskTierSpec]:
        """Those that are wanted, fastest first."""
        wanted = {tier: getattr(self, tier.label) for tier in BEYOND_DEVICE}
        return {tier: spec for tier, spec in wanted.items() if spec is not None}
